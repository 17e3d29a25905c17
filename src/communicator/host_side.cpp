#include "orrery/communicator/host_side.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "ordered_ends.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/pdes/load_recorder.hpp"
#include "wire_format.hpp"

namespace orrery::communicator {
namespace {

collective::Kind kind_of(const Report& report) { return static_cast<collective::Kind>(report.collective); }

/// Returns the name of a group without that of its job. With several jobs, names of groups end with it ("dp@a"); what
/// is drawn for a job must not depend on whether there are others, and the members tell the groups of jobs apart.
std::string_view own_name(std::string_view name) {
  return name.starts_with("world@") ? name : name.substr(0, name.rfind('@'));
}

/// Returns a digest of what a communicator is, which does not depend on how communicators are numbered.
std::uint64_t digest(const CommunicatorSpec& spec) {
  std::uint64_t bits = mix(spec.dimensions, spec.group->members.size());
  for (const char letter : own_name(spec.group->name)) bits = mix(bits, static_cast<unsigned char>(letter));
  for (const NpuId member : spec.group->members) bits = mix(bits, member.value());
  return bits;
}

/// Returns a completion of a collective whose time from the last arrival on is stretched.
Time stretched(Time completion, Time last, double factor) {
  if (completion <= last || completion == Time::max()) return completion;
  const double more = static_cast<double>((completion - last).ps()) * (factor - 1);
  return more < 0x1p63 ? completion + Time::from_ps(static_cast<std::int64_t>(more)) : Time::max();
}

}  // namespace

void HostSide::Pending::clear() {
  report = {};
  done = false;
  reply = Time::max();
  missing = 0;
  ranks_over = 0;
  finish = Time::zero();
  arrivals.clear();
  places.clear();
  is_through.clear();
}

HostSide::HostSide(const Setup& setup, SendReport send) : setup_(setup), send_(std::move(send)) {
  for (const auto& spec : setup_.specs) {
    index_.resize(std::max<std::size_t>(index_.size(), spec.id.index() + 1), none);
    if (spec.host == setup_.hosting.here) add(spec);
  }
}

void HostSide::add(const CommunicatorSpec& spec) {
  const std::uint32_t num_npus = setup_.hosting.num_npus();
  Hosted hosted;
  hosted.spec = spec;
  hosted.members = spec.num_members(num_npus);
  hosted.layout = collective::layout_of(setup_.engine, *spec.group, spec.dimensions, spec.custom);
  if (draws_factors()) hosted.draws_as = digest(spec);
  auto& ranks = hosted.ranks;
  for (std::uint32_t number = 0; number < spec.num_participants(num_npus); ++number) {
    const Rank rank = setup_.hosting.of_npu[spec.participant(number).index()];
    auto found = std::ranges::find(ranks, rank, &Participants::rank);
    if (found == ranks.end()) found = ranks.insert(found, Participants{rank, {}});
    found->numbers.push_back(number);
  }
  std::ranges::sort(ranks, {}, &Participants::rank);
  index_[spec.id.index()] = static_cast<std::uint32_t>(hosted_.size());
  hosted_.push_back(std::move(hosted));
}

void HostSide::receive(Rank from, const Report& report, std::span<const Time> times) {
  Hosted& hosted = hosted_[index_[report.group]];
  switch (report.kind) {
    case ReportKind::begun:
      pending(hosted, report, times.front());
      break;
    case ReportKind::arrivals:
      contribute(hosted, from, report, times);
      break;
    case ReportKind::left:
      end_rank(hosted, from, report, times.front());
      break;
    case ReportKind::completions:
      ensure(false, "a host is told of completions");
  }
}

/// Returns a collective that a participant has joined, at `first` perhaps before all others.
HostSide::Pending& HostSide::pending(Hosted& hosted, const Report& report, Time first) {
  auto& pending = hosted.pending.at(report.ordinal);
  if (pending.arrivals.empty()) {
    pending.report = report;
    pending.arrivals.resize(hosted.spec.num_participants(setup_.hosting.num_npus()));
    if (!computes_at_host()) pending.is_through.resize(pending.arrivals.size());
    pending.missing = static_cast<std::uint32_t>(hosted.ranks.size());
  }
  agree(pending.report, report, may_be_uneven(), hosted.spec, setup_.place_of);
  if (hosted.ranks.size() > 1 && computes_at_host()) {
    const Time least = setup_.engine.least_duration(*hosted.layout, kind_of(report), report.size);
    const Time reply = first + std::min(least, setup_.least_recorded);
    if (reply < pending.reply) {
      pending.reply = reply;
      expect(hosted, pending);
    }
  }
  return pending;
}

const HostSide::Participants& HostSide::participants_of(const Hosted& hosted, Rank rank) {
  const auto found = std::ranges::lower_bound(hosted.ranks, rank, {}, &Participants::rank);
  ensure(found != hosted.ranks.end() && found->rank == rank, "a report of a rank without participants");
  return *found;
}

/// Takes the arrivals of all participants of one rank, and the places among other events behind them.
void HostSide::contribute(Hosted& hosted, Rank from, const Report& report, std::span<const Time> times) {
  const std::size_t count = participants_of(hosted, from).numbers.size();
  const auto number_at = [&](std::size_t i) { return times[times.size() == 1 ? 0 : i]; };
  const auto arrivals = times.first(std::min(times.size(), count));
  auto& pending = this->pending(hosted, report, *std::ranges::min_element(arrivals));
  pending.report.depth = std::max(pending.report.depth, report.depth);
  pending.report.is_recorded &= report.is_recorded;
  pending.report.recorded = std::min(pending.report.recorded, report.recorded);
  const Participants& rank = participants_of(hosted, from);
  pending.report.turn = std::min(pending.report.turn, report.turn);
  for (std::size_t i = 0; i < count; ++i)
    if (const Time arrival = number_at(i); arrival != Time::max()) pending.arrivals[rank.numbers[i]] = arrival;
  if (report.has_places) {
    pending.places.resize(pending.arrivals.size());
    std::vector<JoinPlace> places = wire::appended<JoinPlace>(times, count);
    for (std::size_t i = 0; i < count; ++i) pending.places[rank.numbers[i]] = std::move(places[i]);
  }
  if (--pending.missing == 0 && computes_at_host()) finish(hosted, pending);
}

/// Takes note that all participants of one rank are through. They have all arrived, so `contribute` came before.
void HostSide::end_rank(Hosted& hosted, Rank from, const Report& report, Time finish) {
  auto& pending = hosted.pending.at(report.ordinal);
  for (const std::uint32_t number : participants_of(hosted, from).numbers) pending.is_through[number] = 1;
  pending.finish = std::max(pending.finish, finish);
  if (++pending.ranks_over < hosted.ranks.size()) return;
  if (setup_.load) setup_.load->reply(hosted.spec.id.value(), last_arrival(hosted, pending).time, pending.finish);
  record(hosted, pending, pending.finish);
  pending.done = true;
  hosted.pending.retire();
}

/// Takes note of when the participants of a collective complete at the earliest.
void HostSide::expect(const Hosted& hosted, const Pending& pending) {
  const auto index = static_cast<std::uint32_t>(&hosted - hosted_.data());
  for (const auto& participants : hosted.ranks)
    replies_[participants.rank].push({pending.reply, index, pending.report.ordinal});
}

bool HostSide::is_current(const Reply& reply) const {
  const Window<Pending>& window = hosted_[reply.hosted].pending;
  if (reply.ordinal < window.first() || reply.ordinal - window.first() >= window.count()) return false;
  const Pending& pending = window.at(reply.ordinal);
  return !pending.done && pending.reply == reply.time;
}

Time HostSide::pending_reply(Rank to) const {
  const auto found = replies_.find(to);
  if (found == replies_.end()) return Time::max();
  auto& replies = found->second;
  while (!replies.empty() && !is_current(replies.top())) replies.pop();
  return replies.empty() ? Time::max() : replies.top().time;
}

/// Computes scratch_.completions from the arrivals of all members.
void HostSide::finish_members(const Hosted& hosted, const Pending& pending, std::span<const Time> arrivals) {
  auto& completions = scratch_.completions;
  completions.resize(hosted.members);
  setup_.engine.finish(*hosted.layout, kind_of(pending.report), pending.report.size, arrivals, completions,
                       pending.report.turn);
  if (!draws_factors()) return;
  const Time last = *std::ranges::max_element(arrivals);
  const double factor = setup_.variations->factor(DrawnPer::collective, {hosted.draws_as, pending.report.ordinal});
  for (Time& completion : completions) completion = stretched(completion, last, factor);
}

/// Keeps how the members complete, if this is the first collective of the communicator that diverges.
void HostSide::note_divergence(Hosted& hosted, const Pending& pending, std::span<const Time> completions) {
  if (std::exchange(hosted.diverges, true)) return;
  std::vector<Time> times(completions.begin(), completions.end());
  std::ranges::sort(times);
  Divergence found{hosted.spec.id, *std::ranges::max_element(pending.arrivals), times.front(), {}};
  for (const Time time : completions)
    found.labels.push_back(static_cast<std::uint32_t>(std::ranges::lower_bound(times, time) - times.begin()));
  divergences_.push_back(std::move(found));
}

bool HostSide::draws_factors() const {
  return setup_.variations != nullptr && setup_.variations->has(DrawnPer::collective);
}

/// Returns the ends of all participants by the messages of the collective, if the order of events asks for them.
/// Members that others represent share no memory (fold), so they need no order.
std::optional<OrderedEnds> HostSide::ordered(const Hosted& hosted, const Pending& pending) const {
  if (!setup_.knows_places || pending.arrivals.size() < hosted.members || pending.report.recorded > Time::zero())
    return {};
  return ordered_ends(setup_, {.spec = hosted.spec,
                               .layout = *hosted.layout,
                               .kind = kind_of(pending.report),
                               .size = pending.report.size,
                               .turn = pending.report.turn,
                               .arrivals = pending.arrivals,
                               .places = pending.places});
}

/// Returns the completions of all participants, valid until the next call. One of four sources gives them: the order of
/// messages, what the participants recorded, or the engine, for members or for those that represent them.
std::span<const Time> HostSide::completions(Hosted& hosted, const Pending& pending,
                                            const std::optional<OrderedEnds>& ordered) {
  if (ordered && !draws_factors()) return ordered->times;
  if (pending.report.recorded > Time::zero()) return recorded_completions(pending);
  if (hosted.spec.representatives) return completions_of_representatives(hosted, pending);
  finish_members(hosted, pending, pending.arrivals);
  return scratch_.completions;
}

std::span<const Time> HostSide::recorded_completions(const Pending& pending) {
  const Time last = *std::ranges::max_element(pending.arrivals);
  scratch_.completions.assign(pending.arrivals.size(), last + pending.report.recorded);
  return scratch_.completions;
}

std::span<const Time> HostSide::completions_of_representatives(Hosted& hosted, const Pending& pending) {
  const auto& of_member = hosted.spec.representatives->of_member;
  auto& arrivals = scratch_.arrivals;
  arrivals.resize(hosted.members);
  for (std::size_t i = 0; i < arrivals.size(); ++i) arrivals[i] = pending.arrivals[of_member[i]];
  finish_members(hosted, pending, arrivals);
  const auto& completions = scratch_.completions;
  auto& participants = scratch_.participants;
  participants.resize(pending.arrivals.size());
  for (std::size_t i = completions.size(); i-- > 0;) participants[of_member[i]] = completions[i];
  for (std::size_t i = 0; i < completions.size(); ++i)
    if (completions[i] != participants[of_member[i]]) {
      note_divergence(hosted, pending, completions);
      break;
    }
  return participants;
}

/// Keeps the record of a collective that is over, and adds it to the sums.
void HostSide::record(const Hosted& hosted, const Pending& pending, Time end) {
  const auto [first, last] = std::ranges::minmax_element(pending.arrivals);
  const CollectiveRecord record{hosted.spec.id,
                                pending.report.ordinal,
                                pending.report.collective,
                                hosted.members,
                                pending.report.size,
                                *first,
                                *last,
                                end};
  CollectiveSum& sum = sums_[{record.kind, record.members}];
  const std::uint64_t count = hosted.spec.count();
  sum.count += count;
  sum.bytes += static_cast<unsigned __int128>(record.size.count()) * count;
  sum.time += static_cast<SumOfTimes>((record.finish - record.last_arrival).ps()) * count;
  if (pending.report.is_recorded) records_.push_back(record);
}

std::vector<CollectiveSum> HostSide::sums() const {
  std::vector<CollectiveSum> result;
  for (const auto& [key, sum] : sums_) result.push_back({key.first, key.second, sum.count, sum.bytes, sum.time});
  return result;
}

LastArrival HostSide::last_arrival(const Hosted& hosted, const Pending& pending) {
  const Time time = *std::ranges::max_element(pending.arrivals);
  // Of equal ones the first member of the group, also in a folded run.
  const auto* const representatives = hosted.spec.representatives;
  for (std::uint32_t i = 0; i < hosted.members; ++i)
    if (const std::uint32_t number = representatives ? representatives->of_member[i] : i;
        pending.arrivals[number] == time)
      return {time, hosted.spec.participant(number)};
  ensure_failed("nobody has come last", std::source_location::current());
}

/// Ends a collective of which all participants have arrived: counts and records it, and replies to the ranks.
void HostSide::finish(Hosted& hosted, Pending& pending) {
  const std::optional<OrderedEnds> ordered = this->ordered(hosted, pending);
  const std::span<const Time> completions = this->completions(hosted, pending, ordered);
  const auto& traffic = setup_.engine.traffic(*hosted.layout, kind_of(pending.report), pending.report.size);
  setup_.network.count_collective(traffic, hosted.members * hosted.spec.count());
  if (setup_.load)
    setup_.load->reply(hosted.spec.id.value(), *std::ranges::max_element(pending.arrivals),
                       *std::ranges::min_element(completions));
  record(hosted, pending, *std::ranges::max_element(completions));
  Bytes sent;
  for (const Bytes in_dimension : traffic) sent += in_dimension;
  reply(hosted, pending, sent, completions,
        ordered ? std::span<const EndPlace>(ordered->places) : std::span<const EndPlace>());
}

/// Tells each rank when its participants complete. `sent`: bytes that each member has sent. `places`: places of the
/// completions; empty: none are known.
void HostSide::reply(Hosted& hosted, Pending& pending, Bytes sent, std::span<const Time> completions,
                     std::span<const EndPlace> places) {
  const LpId lp(setup_.first_lp.value() + hosted.spec.id.value());
  setup_.kernel.raise_depth(lp, pending.report.depth + 1);
  Report report = pending.report;
  report.kind = ReportKind::completions;
  report.last = last_arrival(hosted, pending);
  report.depth = setup_.kernel.depth(lp);
  report.size = sent;
  report.has_places = !places.empty();
  pending.done = true;
  hosted.pending.retire();
  for (const auto& rank : hosted.ranks) {
    scratch_.of_rank.clear();
    for (const auto number : rank.numbers) scratch_.of_rank.push_back(completions[number]);
    if (report.has_places) {
      std::vector<EndPlace> of_rank;
      for (const auto number : rank.numbers) of_rank.push_back(places[number]);
      wire::append(of_rank, scratch_.of_rank);
    }
    send_(rank.rank, report, scratch_.of_rank);
  }
}

}  // namespace orrery::communicator
