#include "orrery/communicator/member_side.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/pdes/event.hpp"
#include "wire_format.hpp"

namespace orrery::communicator {
void MemberSide::Pending::clear() {
  report = {};
  done = false;
  count = 0;
  left = 0;
  finish = Time::zero();
  first = Time::max();
  arrivals.clear();
  nodes.clear();
  places.clear();
  is_through.clear();
}

MemberSide::MemberSide(const Setup& setup, SendReport send, Announce announce)
    : setup_(setup), send_(std::move(send)), announce_(std::move(announce)) {
  for (const auto& spec : setup_.specs) add(spec);
}

void MemberSide::add(const CommunicatorSpec& spec) {
  index_.resize(std::max<std::size_t>(index_.size(), spec.id.index() + 1), none);
  const std::uint32_t num_npus = setup_.hosting.num_npus(), num_participants = spec.num_participants(num_npus);
  LocalCommunicator communicator;
  communicator.spec = spec;
  for (std::uint32_t number = 0; number < num_participants; ++number) {
    if (!setup_.hosting.is_here(spec.participant(number))) continue;
    communicator.npus.push_back(spec.participant(number));
    if (spec.representatives || !computes_at_host()) communicator.numbers.push_back(number);
  }
  if (communicator.npus.empty()) return;
  if ((!computes_at_host() || setup_.engine.turns_go_on()) && spec.num_members(num_npus) > 1)
    communicator.layout = collective::layout_of(setup_.engine, *spec.group, spec.dimensions, spec.custom);
  communicator.joined.resize(communicator.npus.size());
  communicator.accesses.resize(communicator.npus.size());
  communicator.is_spread = communicator.npus.size() < num_participants;
  index_[spec.id.index()] = static_cast<std::uint32_t>(communicators_.size());
  communicators_.push_back(std::move(communicator));
}

const MemberSide::LocalCommunicator& MemberSide::local(GroupId group) const {
  const auto index = index_.at(group.index());
  ensure(index != none, "an NPU joins a group that has no participant on this rank");
  return communicators_[index];
}

Membership MemberSide::membership(GroupId group, NpuId npu) const {
  const LocalCommunicator& communicator = local(group);
  const auto& npus = communicator.npus;
  // Groups list their members in any order; the world, and most others, in ascending order.
  auto found = std::lower_bound(npus.begin(), npus.end(), npu);
  if (found == npus.end() || *found != npu) found = std::find(npus.begin(), npus.end(), npu);
  ensure(found != npus.end(), "an NPU joins a group that it is no member of");
  return membership(communicator, static_cast<std::size_t>(found - npus.begin()));
}

Membership MemberSide::membership(GroupId group, std::uint32_t representative) const {
  const LocalCommunicator& communicator = local(group);
  const auto& numbers = communicator.numbers;
  const auto found = std::lower_bound(numbers.begin(), numbers.end(), representative);
  ensure(found != numbers.end() && *found == representative, "an NPU joins a group that it does not represent");
  return membership(communicator, static_cast<std::size_t>(found - numbers.begin()));
}

Membership MemberSide::membership(const LocalCommunicator& communicator, std::size_t participant) const {
  const std::uint32_t num_npus = setup_.hosting.num_npus(), members = communicator.spec.num_members(num_npus);
  return {.communicator = static_cast<std::uint32_t>(&communicator - communicators_.data()),
          .participant = static_cast<std::uint32_t>(participant),
          .members = members,
          .local_participants = static_cast<std::uint32_t>(communicator.npus.size()),
          .position = communicator.numbers.empty() ? 0 : communicator.numbers[participant],
          .is_remote = communicator.is_spread || communicator.spec.host != setup_.hosting.here,
          .is_subgroup = members < num_npus && communicator.spec.dimensions == collective::all_dimensions};
}

std::uint32_t MemberSide::join(const Membership& membership, const Join& join) {
  LocalCommunicator& communicator = communicators_[membership.communicator];
  const Report report{.group = communicator.spec.id.value(),
                      .ordinal = communicator.joined[membership.participant]++,
                      .npu = join.npu.value(),
                      .depth = setup_.kernel.depth(LpId(join.npu.value())),
                      .node_id = join.node_id,
                      .size = join.size,
                      .turn = join.turn,
                      .recorded = join.recorded,
                      .collective = static_cast<std::uint8_t>(join.kind),
                      .is_recorded = join.is_recorded};
  this->join(membership, report, {join.node, join.now, join.place});
  return report.ordinal;
}

collective::Turn MemberSide::turn_after(const Membership& membership, const Join& join) const {
  const auto& layout = communicators_[membership.communicator].layout;
  return layout ? setup_.engine.next_turn(join.turn, *layout, join.kind, join.size) : collective::Turn();
}

/// Adds a participant to a collective, and tells the host if it is the last one of this rank.
void MemberSide::join(const Membership& membership, const Report& report, const Arrival& arrival) {
  const Time now = arrival.time;
  LocalCommunicator& communicator = communicators_[membership.communicator];
  auto& pending = communicator.pending.at(report.ordinal);
  const auto participants = communicator.npus.size();
  if (pending.nodes.empty()) {
    pending.report = report;
    if (!computes_at_host() && communicator.layout) {
      pending.turn = communicator.turn;
      communicator.turn = setup_.engine.next_turn(communicator.turn, *communicator.layout,
                                                  static_cast<collective::Kind>(report.collective), report.size);
    }
    pending.nodes.resize(participants);
    if (setup_.knows_places) pending.places.resize(participants);
    if (computes_at_host()) {
      pending.arrivals.resize(participants);
    } else {
      pending.arrivals.resize(participants, Time::max());
      pending.is_through.resize(participants);
    }
  }
  if (communicator.is_spread && now < pending.first && participants > 1 && computes_at_host()) {
    pending.first = now;
    begun_.emplace_back(membership.communicator, report.ordinal);
  }
  agree(pending.report, report, may_be_uneven(), communicator.spec, setup_.place_of);
  pending.report.depth = std::max(pending.report.depth, report.depth);
  pending.report.is_recorded &= report.is_recorded;
  pending.report.recorded = std::min(pending.report.recorded, report.recorded);
  pending.report.turn = std::min(pending.report.turn, report.turn);
  pending.arrivals[membership.participant] = now;
  pending.nodes[membership.participant] = arrival.node;
  if (setup_.knows_places) pending.places[membership.participant] = arrival.place;
  if (++pending.count == participants) tell_host(communicator, pending);
}

/// Tells the host that all participants of this rank have arrived.
void MemberSide::tell_host(const LocalCommunicator& communicator, const Pending& pending) {
  // On this rank the answer may come during the call, and end what is pending: so the report is a copy.
  Report report = pending.report;
  report.has_places = setup_.knows_places;
  if (!report.has_places) return send_(communicator.spec.host, report, pending.arrivals);
  std::vector<Time> times = pending.arrivals;
  std::vector<JoinPlace> places = pending.places;
  wire::append(places, times);
  send_(communicator.spec.host, report, times);
}

std::uint32_t MemberSide::num_channels(const Membership& membership, collective::Kind kind, Bytes size) {
  LocalCommunicator& communicator = communicators_[membership.communicator];
  const CommunicatorSpec& spec = communicator.spec;
  if (!communicator.layout_of_channels)
    communicator.layout_of_channels =
        communicator.layout ? communicator.layout
                            : collective::layout_of(setup_.engine, *spec.group, spec.dimensions, spec.custom);
  return effect_of(setup_.engine, *communicator.layout_of_channels, kind, size).num_channels;
}

std::shared_ptr<const collective::MessageProgram> MemberSide::script(const Membership& membership,
                                                                     collective::Kind kind, Bytes size,
                                                                     collective::Turn turn) const {
  return setup_.engine.message_program(*communicators_[membership.communicator].layout, kind, size, turn);
}

void MemberSide::leave(const Membership& membership, std::uint32_t ordinal, Time now) {
  LocalCommunicator& communicator = communicators_[membership.communicator];
  note_through(communicator, ordinal, membership.participant, now);
  end_if_all_are_through(communicator, ordinal);
}

void MemberSide::note_through(LocalCommunicator& communicator, std::uint32_t ordinal, std::uint32_t participant,
                              Time finish) {
  auto& pending = communicator.pending.at(ordinal);
  pending.is_through[participant] = 1;
  pending.finish = std::max(pending.finish, finish);
  ++pending.left;
}

/// Tells the host if all participants of this rank are through.
void MemberSide::end_if_all_are_through(LocalCommunicator& communicator, std::uint32_t ordinal) {
  auto& pending = communicator.pending.at(ordinal);
  if (pending.left < communicator.npus.size()) return;
  Report report = pending.report;
  report.kind = ReportKind::left;
  const Time finish = pending.finish;
  pending.done = true;
  communicator.pending.retire();
  send_(communicator.spec.host, report, std::span(&finish, 1));
}

void MemberSide::settle() {
  for (const auto& [index, ordinal] : begun_) {
    LocalCommunicator& communicator = communicators_[index];
    if (ordinal < communicator.pending.first()) continue;
    const auto& pending = communicator.pending.at(ordinal);
    if (pending.count == 0 || pending.count == communicator.npus.size()) continue;
    Report report = pending.report;
    report.kind = ReportKind::begun;
    send_(communicator.spec.host, report, std::span(&pending.first, 1));
  }
  begun_.clear();
}

void MemberSide::complete(const Report& report, std::span<const Time> times) {
  LocalCommunicator& communicator = communicators_[index_[report.group]];
  auto& pending = communicator.pending.at(report.ordinal);
  const LpId lp(setup_.first_lp.value() + report.group);
  setup_.kernel.raise_depth(lp, report.depth);
  std::vector<EndPlace> places;
  if (report.has_places) places = wire::appended<EndPlace>(times, communicator.npus.size());
  for (std::size_t i = 0; i < communicator.npus.size(); ++i) {
    const Time time = times[times.size() == 1 ? 0 : i];
    const NpuId npu = communicator.npus[i];
    auto event = pdes::Event::make(time, pdes::Stage::client, lp, report.ordinal, LpId(npu.value()));
    event.node = pending.nodes[i].value();
    event.kind = pdes::completion;
    if (time != Time::max()) setup_.kernel.schedule(event);
    announce_(
        {npu, pending.nodes[i], time, report.size, report.last, event.order, places.empty() ? EndPlace() : places[i]});
  }
  pending.done = true;
  communicator.pending.retire();
}

JoinedCollective MemberSide::joined(const Membership& membership, bool is_access) const {
  const auto& communicator = communicators_[membership.communicator];
  const auto& joined = is_access ? communicator.accesses : communicator.joined;
  return {communicator.spec.id, joined[membership.participant] - 1, membership.members};
}

std::vector<NpuId> MemberSide::not_joined(GroupId group, std::uint32_t ordinal, bool is_access) const {
  std::vector<NpuId> result;
  if (group.index() >= index_.size() || index_[group.index()] == none) return result;
  const auto& communicator = communicators_[index_[group.index()]];
  for (std::size_t i = 0; i < communicator.npus.size(); ++i) {
    if ((is_access ? communicator.accesses : communicator.joined)[i] > ordinal) continue;
    const auto* const representatives = communicator.spec.representatives;
    if (!representatives) result.push_back(communicator.npus[i]);
    for (std::uint32_t k = 0; representatives && k < representatives->of_member.size(); ++k)
      if (representatives->of_member[k] == communicator.numbers[i]) result.push_back(communicator.spec.member(k));
  }
  return result;
}

}  // namespace orrery::communicator
