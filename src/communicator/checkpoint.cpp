// What a checkpoint holds of communicators: by participants, so that it does not depend on which rank hosts whom. The
// hosts learn again from the members which collectives are under way.
#include <algorithm>
#include <tuple>

#include "orrery/communicator/communicators.hpp"

namespace orrery::communicator {

// ---- Members ----

/// Returns what a participant has joined that is not over, and the turn of the collective that it joins next. Of a
/// collective that all participants of this rank are through with, the host knows.
MemberSide::Restored MemberSide::saved(const LocalCommunicator& communicator, std::uint32_t participant) const {
  Restored saved;
  const auto& window = communicator.pending;
  const std::uint32_t next = communicator.joined[participant];
  const bool is_known = next < window.first() + window.count() && !window.at(next).nodes.empty();
  saved.turn = is_known ? window.at(next).turn : communicator.turn;
  for (std::uint32_t ordinal = window.first(); ordinal < next; ++ordinal) {
    const Pending& pending = window.at(ordinal);
    if (pending.done || pending.arrivals[participant] == Time::max()) continue;
    saved.joined.push_back({pending.report, pending.turn, pending.arrivals[participant],
                            pending.places.empty() ? JoinPlace() : pending.places[participant],
                            pending.nodes[participant], pending.finish,
                            !pending.is_through.empty() && pending.is_through[participant] != 0});
  }
  return saved;
}

void MemberSide::serialize(const Membership& membership, Archive& archive) {
  LocalCommunicator& communicator = communicators_[membership.communicator];
  const std::uint32_t participant = membership.participant;
  const LpId lp(setup_.first_lp.value() + communicator.spec.id.value());
  std::uint32_t depth = setup_.kernel.depth(lp);
  archive(communicator.joined[participant], communicator.accesses[participant], depth);
  Restored saved;
  if (!archive.reads()) saved = this->saved(communicator, participant);
  archive(saved);
  if (!archive.reads()) return;
  setup_.kernel.raise_depth(lp, depth);
  saved.membership = membership;
  for (Joined& joined : saved.joined) joined.report.group = communicator.spec.id.value();  // it may be new
  restored_.push_back(std::move(saved));
}

void MemberSide::resume() {
  std::ranges::sort(restored_, {}, [](const Restored& one) {
    return std::tuple(one.membership.communicator, one.membership.participant);
  });
  for (auto first = restored_.begin(); first != restored_.end();) {
    const auto end = std::find_if(first, restored_.end(), [&](const Restored& other) {
      return other.membership.communicator != first->membership.communicator;
    });
    resume({first, end});
    first = end;
  }
  restored_.clear();
  settle();
}

/// Lets the participants of one communicator join again what they had joined, in the order of its collectives.
void MemberSide::resume(std::span<const Restored> participants) {
  LocalCommunicator& communicator = communicators_[participants.front().membership.communicator];
  std::uint32_t least = ~0U, most = 0;
  collective::Turn next_turn;
  for (const Restored& one : participants) {
    const std::uint32_t next = communicator.joined[one.membership.participant];
    least = std::min(least, one.joined.empty() ? next : one.joined.front().report.ordinal);
    most = std::max(most, next);
    if (next == most) next_turn = one.turn;
  }
  communicator.pending.start_at(least);
  for (std::uint32_t ordinal = least; ordinal < most; ++ordinal) {
    std::vector<std::pair<const Restored*, const Joined*>> here;
    for (const Restored& one : participants) {
      const auto found =
          std::ranges::find(one.joined, ordinal, [](const Joined& joined) { return joined.report.ordinal; });
      if (found != one.joined.end()) {
        here.emplace_back(&one, &*found);
      } else if (communicator.joined[one.membership.participant] > ordinal) {  // through, and the host knows
        auto& pending = communicator.pending.at(ordinal);
        ++pending.count;
        ++pending.left;
      }
    }
    for (const auto& [one, joined] : here) {
      communicator.turn = joined->turn;
      join(one->membership, joined->report, {joined->node, joined->arrival, joined->place});
    }
    for (const auto& [one, joined] : here)
      if (joined->is_through) note_through(communicator, ordinal, one->membership.participant, joined->finish);
    if (computes_at_host()) continue;
    if (here.empty())
      communicator.pending.at(ordinal).done = communicator.pending.at(ordinal).left == communicator.npus.size();
    else
      end_if_all_are_through(communicator, ordinal);
  }
  communicator.pending.retire();
  communicator.turn = next_turn;
}

// ---- Hosts ----

void HostSide::serialize(GroupId group, Archive& archive) {
  Hosted& hosted = hosted_[index_[group.index()]];
  std::uint32_t first = hosted.pending.first(), count = computes_at_host() ? 0 : hosted.pending.count();
  archive(first, count, hosted.diverges);
  if (archive.reads()) hosted.pending.start_at(first);
  for (std::uint32_t i = 0; i < count; ++i) serialize_pending(hosted, first + i, archive);
}

/// Writes or reads a collective with Execution::by_members. Members that are through do not join it again.
void HostSide::serialize_pending(Hosted& hosted, std::uint32_t ordinal, Archive& archive) {
  Pending& pending = hosted.pending.at(ordinal);
  archive(pending.report, pending.done, pending.finish, pending.arrivals, pending.is_through);
  if (!archive.reads() || pending.done) return;
  pending.missing = pending.ranks_over = 0;
  for (const Participants& rank : hosted.ranks) {
    const bool is_over =
        std::ranges::all_of(rank.numbers, [&](std::uint32_t number) { return pending.is_through[number] != 0; });
    ++(is_over ? pending.ranks_over : pending.missing);
  }
}

std::vector<GroupId> HostSide::used() const {
  std::vector<GroupId> groups;
  for (const Hosted& hosted : hosted_)
    if (hosted.pending.first() > 0 || !hosted.pending.empty()) groups.push_back(hosted.spec.id);
  return groups;
}

void HostSide::rename_records(std::span<const std::vector<GroupId>> communicators_of) {
  std::vector<CollectiveRecord> records;
  for (const CollectiveRecord& record : records_)
    for (const GroupId group : communicators_of[record.group.index()]) records.emplace_back(record).group = group;
  records_ = std::move(records);
}

void HostSide::serialize_sums(Archive& archive) {
  auto records = archive.reads() ? std::vector<CollectiveRecord>() : records_;
  auto sums = archive.reads() ? decltype(sums_)() : sums_;
  auto divergences = archive.reads() ? std::vector<Divergence>() : divergences_;
  archive(records, sums, divergences);
  if (!archive.reads()) return;
  records_.insert(records_.end(), records.begin(), records.end());
  divergences_.insert(divergences_.end(), divergences.begin(), divergences.end());
  for (const auto& [key, more] : sums) {
    CollectiveSum& sum = sums_[key];
    sum.count += more.count;
    sum.bytes += more.bytes;
    sum.time += more.time;
  }
}

}  // namespace orrery::communicator
