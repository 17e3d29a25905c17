#include "orrery/communicator/communicators.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "orrery/base/text.hpp"

namespace orrery::communicator {
namespace {

constexpr std::uint32_t none = ~0U;

bool all_equal(std::span<const Time> times) {
  return std::all_of(times.begin(), times.end(), [&](Time time) { return time == times.front(); });
}

}  // namespace

void Communicators::Membership::Pending::clear() {
  call = {};
  done = false;
  count = 0;
  left = 0;
  first = Time::max();
  arrivals.clear();
  nodes.clear();
}

void Communicators::Hosted::Pending::clear() {
  call = {};
  done = false;
  reply = Time::max();
  has.clear();
  missing = 0;
  parts_over = 0;
  finish = Time::zero();
  arrivals.clear();
}

Communicators::Communicators(pdes::Scheduler& kernel, collective::Engine& engine, network::Analytical& network,
                             std::span<const CommunicatorSpec> specs, const Hosting& hosting, LpId first_lp,
                             Announce announce, const PlaceOf& place_of, bool over_links)
    : kernel_(kernel),
      engine_(engine),
      network_(network),
      hosting_(hosting),
      first_lp_(first_lp),
      announce_(std::move(announce)),
      place_of_(place_of),
      over_links_(over_links) {
  for (const auto& spec : specs) {
    const auto size = std::max<std::size_t>(membership_of_.size(), spec.id.index() + 1);
    membership_of_.resize(size, none);
    hosted_of_.resize(size, none);
    add_membership(spec);
    if (spec.host == hosting_.here) add_hosted(spec);
  }
}

NpuId Communicators::member(const CommunicatorSpec& spec, std::uint32_t position) const {
  return spec.group->members.empty() ? NpuId(position) : spec.group->members[position];
}

std::uint32_t Communicators::num_members(const CommunicatorSpec& spec) const {
  return static_cast<std::uint32_t>(spec.group->members.empty() ? hosting_.num_npus() : spec.group->members.size());
}

std::uint32_t Communicators::num_seats(const CommunicatorSpec& spec) const {
  return spec.seating ? static_cast<std::uint32_t>(spec.seating->seats.size()) : num_members(spec);
}

NpuId Communicators::who_sits(const CommunicatorSpec& spec, std::uint32_t seat) const {
  return spec.seating ? spec.seating->seats[seat] : member(spec, seat);
}

void Communicators::add_membership(const CommunicatorSpec& spec) {
  Membership membership;
  membership.spec = spec;
  for (std::uint32_t i = 0; i < num_seats(spec); ++i)
    if (const NpuId npu = who_sits(spec, i); hosting_.of_npu[npu.index()] == hosting_.here) {
      membership.npus.push_back(npu);
      if (spec.seating || over_links_) membership.seats.push_back(i);
    }
  if (membership.npus.empty()) return;
  if (over_links_ && num_members(spec) > 1)
    membership.layout = engine_.layout(spec.group->members, spec.dimensions, spec.custom);
  membership.joined.resize(membership.npus.size());
  membership.accesses.resize(membership.npus.size());
  membership.is_spread = membership.npus.size() < num_seats(spec);
  membership_of_[spec.id.index()] = static_cast<std::uint32_t>(memberships_.size());
  memberships_.push_back(std::move(membership));
}

void Communicators::add_hosted(const CommunicatorSpec& spec) {
  Hosted hosted;
  hosted.spec = spec;
  hosted.members = num_members(spec);
  hosted.layout = engine_.layout(spec.group->members, spec.dimensions, spec.custom);
  for (std::uint32_t i = 0; i < num_seats(spec); ++i) {
    const Rank rank = hosting_.of_npu[who_sits(spec, i).index()];
    auto part = std::find_if(hosted.parts.begin(), hosted.parts.end(), [&](const auto& p) { return p.rank == rank; });
    if (part == hosted.parts.end()) part = hosted.parts.insert(part, Hosted::Part{rank, {}});
    part->seats.push_back(i);
  }
  std::sort(hosted.parts.begin(), hosted.parts.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  hosted_of_[spec.id.index()] = static_cast<std::uint32_t>(hosted_.size());
  hosted_.push_back(std::move(hosted));
}

Communicators::Seat Communicators::seat(GroupId group, NpuId npu) const {
  const auto m = membership_of_.at(group.index());
  ensure(m != none, "an NPU joins a group that has no member on this rank");
  const auto& membership = memberships_[m];
  const auto& npus = membership.npus;
  // Groups list their members in any order; the world, and most others, in ascending order.
  auto found = std::lower_bound(npus.begin(), npus.end(), npu);
  if (found == npus.end() || *found != npu) found = std::find(npus.begin(), npus.end(), npu);
  ensure(found != npus.end(), "an NPU joins a group that it is no member of");
  return seat(membership, static_cast<std::size_t>(found - npus.begin()));
}

Communicators::Seat Communicators::seat(GroupId group, std::uint32_t number) const {
  const auto m = membership_of_.at(group.index());
  ensure(m != none, "an NPU joins a group that has no seat on this rank");
  const auto& seats = memberships_[m].seats;
  const auto found = std::lower_bound(seats.begin(), seats.end(), number);
  ensure(found != seats.end() && *found == number, "an NPU joins a group in which it has no seat");
  return seat(memberships_[m], static_cast<std::size_t>(found - seats.begin()));
}

Communicators::Seat Communicators::seat(const Membership& membership, std::size_t local) const {
  return {static_cast<std::uint32_t>(&membership - memberships_.data()),
          static_cast<std::uint32_t>(local),
          num_members(membership.spec),
          static_cast<std::uint32_t>(membership.npus.size()),
          membership.seats.empty() ? 0 : membership.seats[local],
          membership.is_spread || membership.spec.host != hosting_.here};
}

void Communicators::require_same(const Call& first, const Call& other, const CommunicatorSpec& spec) const {
  if (first.kind == other.kind && first.size == other.size) return;
  const auto& [low, high] = first.npu < other.npu ? std::tie(first, other) : std::tie(other, first);
  const auto describe = [](const Call& call) {
    return fmt::format("{} of {}", collective::name(static_cast<collective::Kind>(call.kind)),
                       counted(call.size, "byte"));
  };
  const Place there = place_of_(NpuId(high.npu), high.node_id);
  throw Error(
      ErrorCode::bad_input, place_of_(NpuId(low.npu), low.node_id),
      fmt::format("the members of {} disagree on their collective number {}: here it is {}, but {} at NPU {}, node {} "
                  "'{}' of {}",
                  trace::describe(*spec.group), first.ordinal + 1, describe(low), describe(high), high.npu,
                  high.node_id, there.node_name, there.file),
      "the same kind and size in the same order on all members",
      "No dependencies fix this order, so it is a matter of time: let the collectives of a group depend on each "
      "other.");
}

std::uint32_t Communicators::join(const Seat& seat, const Join& join) {
  Membership& membership = memberships_[seat.membership];
  const Call call{.group = membership.spec.id.value(),
                  .ordinal = membership.joined[seat.local]++,
                  .npu = join.npu.value(),
                  .depth = kernel_.depth(LpId(join.npu.value())),
                  .node_id = join.node_id,
                  .size = join.size.count(),
                  .kind = static_cast<std::uint8_t>(join.kind),
                  .is_recorded = join.is_recorded};
  auto& pending = membership.pending.at(call.ordinal);
  if (pending.count == 0) {
    pending.call = call;
    pending.arrivals.resize(membership.npus.size());
    pending.nodes.resize(membership.npus.size());
  }
  if (membership.is_spread && join.now < pending.first && membership.npus.size() > 1 && !over_links_) {
    pending.first = join.now;
    begun_.emplace_back(seat.membership, call.ordinal);
  }
  require_same(pending.call, call, membership.spec);
  pending.call.depth = std::max(pending.call.depth, call.depth);
  pending.call.is_recorded &= call.is_recorded;
  pending.arrivals[seat.local] = join.now;
  pending.nodes[seat.local] = join.node;
  if (++pending.count < membership.npus.size()) return call.ordinal;
  if (membership.spec.host == hosting_.here)
    contribute(hosting_.here, Call(pending.call), pending.arrivals);
  else
    post(membership.spec.host, pending.call, pending.arrivals);
  return call.ordinal;
}

NpuId Communicators::member(const Seat& seat, std::uint32_t position) const {
  return member(memberships_[seat.membership].spec, position);
}

std::shared_ptr<const collective::MessageProgram> Communicators::script(const Seat& seat, collective::Kind kind,
                                                                        Bytes size) {
  return engine_.message_program(*memberships_[seat.membership].layout, kind, size);
}

void Communicators::leave(const Seat& seat, std::uint32_t ordinal, Time now) {
  Membership& membership = memberships_[seat.membership];
  auto& pending = membership.pending.at(ordinal);
  if (++pending.left < membership.npus.size()) return;
  Call call = pending.call;
  call.what = CallKind::over;
  pending.done = true;
  membership.pending.retire();
  if (membership.spec.host == hosting_.here)
    end_part(call, now);
  else
    post(membership.spec.host, call, std::span(&now, 1));
}

/// At the host: all who sit on one rank are through. They have all arrived, so `contribute` came before.
void Communicators::end_part(const Call& call, Time finish) {
  Hosted& hosted = hosted_[hosted_of_[call.group]];
  auto& pending = hosted.pending.at(call.ordinal);
  pending.finish = std::max(pending.finish, finish);
  if (++pending.parts_over < hosted.parts.size()) return;
  note(hosted, pending, pending.finish);
  pending.done = true;
  hosted.pending.retire();
  track(hosted);
}

void Communicators::settle() {
  for (const auto& [m, ordinal] : begun_) {
    Membership& membership = memberships_[m];
    if (ordinal < membership.pending.first()) continue;
    const auto& pending = membership.pending.at(ordinal);
    if (pending.count == 0 || pending.count == membership.npus.size()) continue;
    Call call = pending.call;
    call.what = CallKind::begin;
    if (membership.spec.host == hosting_.here)
      begin(call, pending.first);
    else
      post(membership.spec.host, call, std::span(&pending.first, 1));
  }
  begun_.clear();
}

void Communicators::post(Rank to, Call call, std::span<const Time> times) {
  if (all_equal(times)) times = times.first(1);
  call.num_times = static_cast<std::uint32_t>(times.size());
  message_.resize(sizeof call + times.size_bytes());
  std::memcpy(message_.data(), &call, sizeof call);
  std::memcpy(message_.data() + sizeof call, times.data(), times.size_bytes());
  kernel_.post(to, message_);
}

void Communicators::receive(Rank from, std::span<const std::byte> message) {
  Call call;
  ensure(message.size() >= sizeof call, "a post of a communicator without its head");
  std::memcpy(&call, message.data(), sizeof call);
  ensure(message.size() == sizeof call + call.num_times * sizeof(Time), "a post of a communicator of wrong size");
  auto& times = received_;
  times.resize(call.num_times);
  std::memcpy(times.data(), message.data() + sizeof call, times.size() * sizeof(Time));
  if (call.what == CallKind::begin)
    begin(call, times.at(0));
  else if (call.what == CallKind::contribution)
    contribute(from, call, times);
  else if (call.what == CallKind::over)
    end_part(call, times.at(0));
  else
    complete(call, times);
}

/// At the host: a collective that somebody has come to, at `first` perhaps before all others.
Communicators::Hosted::Pending& Communicators::hosted_call(Hosted& hosted, const Call& call, Time first) {
  auto& pending = hosted.pending.at(call.ordinal);
  if (pending.arrivals.empty()) {
    pending.call = call;
    pending.arrivals.resize(num_seats(hosted.spec));
    pending.has.resize(hosted.parts.size());
    pending.missing = static_cast<std::uint32_t>(hosted.parts.size());
  }
  require_same(pending.call, call, hosted.spec);
  if (hosted.parts.size() > 1 && !over_links_) {
    const Time least =
        engine_.least_duration(*hosted.layout, static_cast<collective::Kind>(call.kind), Bytes(call.size));
    pending.reply = std::min(pending.reply, first + least);
  }
  return pending;
}

void Communicators::begin(const Call& call, Time first) {
  Hosted& hosted = hosted_[hosted_of_[call.group]];
  hosted_call(hosted, call, first);
  track(hosted);
}

/// At the host: all who sit on one rank have arrived.
void Communicators::contribute(Rank from, const Call& call, std::span<const Time> arrivals) {
  Hosted& hosted = hosted_[hosted_of_[call.group]];
  auto& pending = hosted_call(hosted, call, *std::min_element(arrivals.begin(), arrivals.end()));
  pending.call.depth = std::max(pending.call.depth, call.depth);
  pending.call.is_recorded &= call.is_recorded;
  const auto part = std::lower_bound(hosted.parts.begin(), hosted.parts.end(), from,
                                     [](const Hosted::Part& p, Rank rank) { return p.rank < rank; });
  ensure(part != hosted.parts.end() && part->rank == from, "a contribution from a rank without members");
  pending.has[static_cast<std::size_t>(part - hosted.parts.begin())] = 1;
  for (std::size_t i = 0; i < part->seats.size(); ++i)
    pending.arrivals[part->seats[i]] = arrivals[arrivals.size() == 1 ? 0 : i];
  if (--pending.missing == 0 && !over_links_) finish(hosted, pending);
  track(hosted);
}

/// Keeps `open_`.
void Communicators::track(Hosted& hosted) {
  const auto index = static_cast<std::uint32_t>(&hosted - hosted_.data());
  const bool is_open = !hosted.pending.empty();
  if (is_open == hosted.is_open) return;
  hosted.is_open = is_open;
  if (is_open)
    open_.push_back(index);
  else
    open_.erase(std::find(open_.begin(), open_.end(), index));
}

Time Communicators::pending_reply(Rank to) const {
  Time least = Time::max();
  for (const auto index : open_) {
    const Hosted& hosted = hosted_[index];
    const auto has_members = [&](const Hosted::Part& part) { return part.rank == to; };
    if (std::none_of(hosted.parts.begin(), hosted.parts.end(), has_members)) continue;
    for (std::uint32_t i = 0; i < hosted.pending.count(); ++i)
      if (const auto& pending = hosted.pending.at(hosted.pending.first() + i); !pending.done)
        least = std::min(least, pending.reply);
  }
  return least;
}

/// Valid until the next call. In a folded run members of one seat complete together, or the fold is wrong.
std::span<const Time> Communicators::completions_of_seats(const Hosted& hosted, const Hosted::Pending& pending) {
  const auto kind = static_cast<collective::Kind>(pending.call.kind);
  const Bytes size(pending.call.size);
  completions_.resize(hosted.members);
  if (!hosted.spec.seating) {
    engine_.finish(*hosted.layout, kind, size, pending.arrivals, completions_);
    return completions_;
  }
  const auto& seat_of = hosted.spec.seating->seat_of;
  arrivals_.resize(hosted.members);
  for (std::size_t i = 0; i < arrivals_.size(); ++i) arrivals_[i] = pending.arrivals[seat_of[i]];
  engine_.finish(*hosted.layout, kind, size, arrivals_, completions_);
  of_seats_.resize(pending.arrivals.size());
  for (std::size_t i = completions_.size(); i-- > 0;) of_seats_[seat_of[i]] = completions_[i];
  for (std::size_t i = 0; i < completions_.size(); ++i)
    ensure(completions_[i] == of_seats_[seat_of[i]],
           "members of a collective that are folded into one complete together");
  return of_seats_;
}

/// A collective that stands for `count`, itself included.
void Communicators::add_up(const CollectiveRecord& record, std::uint64_t count) {
  CollectiveSum& sum = sums_[{record.kind, record.members}];
  sum.count += count;
  sum.bytes += static_cast<unsigned __int128>(record.size.count()) * count;
  sum.time += static_cast<SumOfTimes>((record.finish - record.last_arrival).ps()) * count;
}

std::vector<CollectiveSum> Communicators::sums() const {
  std::vector<CollectiveSum> result;
  for (const auto& [key, sum] : sums_) result.push_back({key.first, key.second, sum.count, sum.bytes, sum.time});
  return result;
}

/// For the records: a collective hosted here is over.
void Communicators::note(const Hosted& hosted, const Hosted::Pending& pending, Time end) {
  const auto [first, last] = std::minmax_element(pending.arrivals.begin(), pending.arrivals.end());
  const CollectiveRecord record{hosted.spec.id,
                                pending.call.ordinal,
                                pending.call.kind,
                                hosted.members,
                                Bytes(pending.call.size),
                                *first,
                                *last,
                                end};
  add_up(record, hosted.spec.seating ? hosted.spec.seating->count : 1);
  if (pending.call.is_recorded) records_.push_back(record);
}

void Communicators::finish(Hosted& hosted, Hosted::Pending& pending) {
  const auto kind = static_cast<collective::Kind>(pending.call.kind);
  const Bytes size(pending.call.size);
  const auto completions = completions_of_seats(hosted, pending);
  const auto& traffic = engine_.traffic(*hosted.layout, kind, size);
  const std::uint64_t count = hosted.spec.seating ? hosted.spec.seating->count : 1;
  network_.count_collective(traffic, hosted.members * count);

  note(hosted, pending, *std::max_element(completions.begin(), completions.end()));
  const LpId lp(first_lp_.value() + hosted.spec.id.value());
  kernel_.raise_depth(lp, pending.call.depth + 1);

  Call call = pending.call;
  call.what = CallKind::completion;
  call.depth = kernel_.depth(lp);
  Bytes sent;
  for (const Bytes in_dimension : traffic) sent += in_dimension;
  call.size = sent.count();
  pending.done = true;
  hosted.pending.retire();
  for (const auto& part : hosted.parts) {
    part_times_.clear();
    for (const auto seat : part.seats) part_times_.push_back(completions[seat]);
    if (part.rank == hosting_.here)
      complete(call, part_times_);
    else
      post(part.rank, call, part_times_);
  }
}

/// At a rank with members: a collective is over.
void Communicators::complete(const Call& call, std::span<const Time> completions) {
  Membership& membership = memberships_[membership_of_[call.group]];
  auto& pending = membership.pending.at(call.ordinal);
  const LpId lp(first_lp_.value() + call.group);
  kernel_.raise_depth(lp, call.depth);
  for (std::size_t i = 0; i < membership.npus.size(); ++i) {
    const Time time = completions[completions.size() == 1 ? 0 : i];
    auto event = pdes::Event::make(time, pdes::Stage::npu, lp, call.ordinal, LpId(membership.npus[i].value()));
    event.node = pending.nodes[i].value();
    event.kind = pdes::completion;
    if (event.time != Time::max()) kernel_.schedule(event);
    announce_(membership.npus[i], pending.nodes[i], event.time, Bytes(call.size));
  }
  pending.done = true;
  membership.pending.retire();
}

Communicators::Waiting Communicators::waiting(const Seat& seat, bool is_access) const {
  const auto& membership = memberships_[seat.membership];
  const auto& joined = is_access ? membership.accesses : membership.joined;
  return {membership.spec.id, joined[seat.local] - 1, seat.members};
}

std::vector<NpuId> Communicators::not_joined(GroupId group, std::uint32_t ordinal, bool is_access) const {
  std::vector<NpuId> result;
  if (group.index() >= membership_of_.size() || membership_of_[group.index()] == none) return result;
  const auto& membership = memberships_[membership_of_[group.index()]];
  for (std::size_t i = 0; i < membership.npus.size(); ++i) {
    if ((is_access ? membership.accesses : membership.joined)[i] > ordinal) continue;
    const auto* const seating = membership.spec.seating;
    if (!seating) result.push_back(membership.npus[i]);
    for (std::uint32_t k = 0; seating && k < seating->seat_of.size(); ++k)
      if (seating->seat_of[k] == membership.seats[i]) result.push_back(member(membership.spec, k));
  }
  return result;
}

}  // namespace orrery::communicator
