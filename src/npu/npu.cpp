#include "npu.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "noise.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/collective/kind.hpp"
#include "orrery/npu/recorded.hpp"
#include "orrery/topology/circuits.hpp"

namespace orrery::npu {

using trace::NodeKind;

namespace {

constexpr int most_moments_ahead = 256;  ///< so that the kernel sees to messages and to requests to stop

/// Returns the free resource whose next node has the lowest id; count() if no node can begin.
std::size_t next_resource(const Resources& resources) {
  std::size_t first = resources.count();
  for (auto i = resources.next_ready(0); i < resources.count(); i = resources.next_ready(i + 1))
    if (resources.can_take(i) && (first == resources.count() || resources.next(i) < resources.next(first))) first = i;
  return first;
}

}  // namespace

Npu::Npu(const NpuSpec& npu, const Lookahead& lookahead, std::vector<communicator::Membership> memberships,
         Context& context, std::optional<Overrun>& overrun)
    : execution_(npu, lookahead, context, overrun),
      messaging_(make_messaging(context)),
      collectives_(make_collectives(context)),
      blocks_(make_thread_blocks(context)),
      memberships_(std::move(memberships)),
      contention_(make_contention(execution_, memberships_)),
      draws_as_(mix(context.options.noise.seed, npu.id.value())) {
  // What collectives defer, and what links and thread blocks do, is decided when the kernel hands out the event.
  shortcuts_.runs_ahead = context.services.links == nullptr && context.gpus == nullptr &&
                          !contention_->depends_on_events() && !execution_.order().keeps_events();
  shortcuts_.uses_hosts = context.gpus == nullptr && !collectives_->are_here();
}

bool Npu::handle(const pdes::Event& event) { return execution_.order().keep(event) || handle_now(event); }

/// Ends the node whose collective over the links is over. Returns whether there is one.
bool Npu::end_on_links(std::optional<NodeId> over, Time now) {
  if (!over) return false;
  contention_->end_transfer(*over, now);
  execution_.complete(*over, now);
  return true;
}

bool Npu::handle_now(const pdes::Event& event) {
  const NodeId id(event.node);
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::start:
      return true;
    case EventKind::complete:
      if (contention_->contends(*execution_.npu().program, id) && contention_->defer(id, event.time)) return false;
      [[fallthrough]];
    case EventKind::sent:
      execution_.complete(id, event.time);
      return true;
    case EventKind::received:
    case EventKind::cleared:
      messaging_->handle(execution_, event);
      return true;
    case EventKind::arrived: {
      const network::Message message = execution_.context().services.links->take(event);
      if (message.kind == network::Message::Kind::request) {
        blocks_->arrive(execution_, message, event.time);
        contention_->hold_sms(blocks_->sms(), event.time);
        return true;
      }
      const bool is_of_node =
          message.kind == network::Message::Kind::data || message.kind == network::Message::Kind::clear_to_send;
      if (is_of_node) return messaging_->arrive(execution_, message, event.time);
      return end_on_links(collectives_->arrive(execution_, message, event.time), event.time);
    }
    case EventKind::wake:
      return end_on_links(collectives_->wake(execution_, id, network::unpacked(event.detail), event.time), event.time);
    case EventKind::gpu_resume:
    case EventKind::gpu_offer:
    case EventKind::gpu_over:
    case EventKind::gpu_take:
    case EventKind::left:
      blocks_->handle(execution_, event);
      contention_->hold_sms(blocks_->sms(), event.time);
      return true;
    case EventKind::data:
    case EventKind::clear_to_send:
    case EventKind::goes_on:
      break;
  }
  ensure_failed("an event that no NPU handles", std::source_location::current());
}

void Npu::end_event(Time now) { end_on_links(collectives_->end_event(execution_, now), now); }

void Npu::settle(Time now, bool is_last) {
  const bool runs_ahead = shortcuts_.runs_ahead && is_last;
  KeptEnds& ends = execution_.context().kept_ends;
  ends.is_on = runs_ahead;
  settle_at(now);
  if (!runs_ahead) return;
  run_ahead();
  ends.give_up([this](const pdes::Event& end) { execution_.context().services.kernel.schedule(end); });
  ends.is_on = false;
}

/// Ends nodes whose ends are kept, one moment after the other. An NPU that awaits nothing may do so: what others send
/// it meanwhile waits in its messaging until it is asked for. All other NPUs of this rank must have scheduled what they
/// do next, because the kernel says by that what is certain.
void Npu::run_ahead() {
  pdes::Scheduler& kernel = execution_.context().services.kernel;
  KeptEnds& ends = execution_.context().kept_ends;
  for (int moment = 0; moment < most_moments_ahead && !awaits().anything(); ++moment) {
    const Time now = ends.next();
    if (now == Time::max() || !kernel.advance(lp(), now)) return;
    execution_.complete(ends.take(), now);
    for (; ends.next() == now; execution_.complete(ends.take(), now))
      ensure(kernel.advance(lp(), now), "an NPU stops in the middle of a moment");
    settle_at(now);
  }
}

/// Lets nodes begin at `now` until none can; those that take no time end in between.
void Npu::settle_at(Time now) {
  has_settled_ = true;
  if (has_broken_off_) messaging_->forget_undecided();
  has_broken_off_ = false;
  execution_.order().handle_kept(*this, now);
  do {
    begin_ready(now);
    if (messaging_->is_undecided()) {
      has_broken_off_ = true;
      return execution_.context().services.kernel.wait_until_certain(lp());
    }
    // Nodes that take no time hold their resource until all others of this round have begun.
  } while (execution_.end_instant_nodes(now));
  blocks_->settle(execution_, now);
  messaging_->settle(execution_, now);
  // What comes later for its memory is none of its time.
  if (is_done() && !std::exchange(has_ended_, true)) execution_.accounting().end_run(now);
}

/// Begins the nodes that are ready, as far as resources are free.
void Npu::begin_ready(Time now) {
  Resources& resources = execution_.schedule().resources();
  if (execution_.order().begins_lowest_first()) {
    for (auto i = next_resource(resources); i < resources.count(); i = next_resource(resources))
      issue(resources.take(i), static_cast<std::uint16_t>(i), now);
    return;
  }
  for (auto i = resources.next_ready(0); i < resources.count(); i = resources.next_ready(i + 1))
    while (resources.can_take(i)) issue(resources.take(i), static_cast<std::uint16_t>(i), now);
}

void Npu::issue(NodeId id, std::uint16_t resource, Time now) {
  execution_.begin(id, resource, now);
  if (execution_.context().options.replay_only)
    return execution_.end_at(id, now, now + execution_.npu().program->durations[id.index()]);
  switch (execution_.node(id).kind) {
    case NodeKind::send:
      return messaging_->begin_send(execution_, id, now);
    case NodeKind::receive:
      return messaging_->begin_receive(execution_, id, now);
    case NodeKind::mem_load:
    case NodeKind::mem_store:
      return issue_access(id, now);
    case NodeKind::collective:
      return issue_collective(id, now);
    default:
      if (!contention_->contends_compute()) return execution_.end_at(id, now, now + compute_time(id));
      if (const auto finish = contention_->begin_compute(id, compute_time(id), now))
        execution_.end_at(id, now, *finish);
  }
}

/// Returns the time of a compute or CPU node. The draws depend on the seed, the NPU, the node and the iteration alone.
Time Npu::compute_time(NodeId id) const {
  const Options& options = execution_.context().options;
  const NpuId npu = execution_.npu().id;
  Time exact = execution_.npu().program->durations[id.index()];
  if (execution_.node(id).kind == NodeKind::compute) exact = at_speed(exact, options.speed_of(npu));
  if (!options.varies_compute()) return exact;
  const std::uint64_t iteration = execution_.schedule().iteration();
  double factor = 1;
  if (options.noise.amplitude > 0) {
    const std::uint64_t bits = mix(mix(draws_as_, id.value()), iteration);
    factor = noise_factor(options.noise.amplitude, static_cast<double>(bits >> 11U) * 0x1p-53);
  }
  if (!options.noise.variations.all().empty()) {
    factor *= options.noise.variations.factor(DrawnPer::step, {npu.value(), iteration});
    factor *= options.noise.variations.factor(DrawnPer::node, {npu.value(), id.value(), iteration});
  }
  return times_factor(exact, factor);
}

/// Turns the ports to the configuration of a group's circuits. Returns for how long they are dark: until the circuits
/// that change are empty, and then for the time of the switch.
Time Npu::turn_to(GroupId group, Time now) {
  const topology::Circuits* const circuits = execution_.context().options.network.circuits.get();
  if (circuits == nullptr) return Time::zero();
  const std::uint32_t before = std::exchange(circuits_, execution_.context().groups[group.index()].circuits);
  if (!circuits->changes(id(), before, circuits_)) return Time::zero();
  const auto& services = execution_.context().services;
  const Time empty = services.links == nullptr ? now : services.links->drained(id(), before, circuits_, now);
  return empty - now + circuits->switching_time();
}

void Npu::issue_collective(NodeId id, Time now) {
  const std::uint32_t use = execution_.npu().program->use_of_node(id);
  const communicator::Membership& membership = memberships_[use];
  const trace::Node& node = execution_.node(id);
  const Context& context = execution_.context();
  const Time recorded = context.options.recorded_communication
                            ? recorded_cost(*execution_.npu().program->graph, id, context.options)
                            : Time::zero();
  if (membership.members == 1) return execution_.end_at(id, now, now + recorded);
  if (!shortcuts_.uses_hosts && blocks_->join(execution_, id, execution_.npu().groups[use], membership, now))
    return contention_->hold_sms(blocks_->sms(), now);
  const GroupId group = execution_.npu().groups[use];
  const Time dark = turn_to(group, now);
  communicator::Join join{
      this->id(),       id,         execution_.npu().trace->id_of(id),   collective::kind_of(node.collective),
      Bytes(node.size), now + dark, execution_.schedule().is_recorded(), recorded,
      next_turn_,       {}};
  auto& communicators = execution_.context().services.communicators;
  std::optional<collective::Turn> turn;
  if (execution_.context().queues > 0) {
    turn = next_turn_;
    next_turn_ = communicators.turn_after(membership, join);
  }
  const bool contends = contention_->contends(use);
  if (contends) contention_->begin_transfer(id, now);
  if (!shortcuts_.uses_hosts && collectives_->are_here()) {
    if (!collectives_->join(execution_, id, group, membership, now, turn, dark)) return;
    contention_->end_transfer(id, now);
    return execution_.end_at(id, now, now);
  }
  if (contends) contention_->begin_yielding(id, now);
  execution_.awaited().add({.here = membership.local_participants > 1, .replies = membership.is_remote});
  execution_.order().join(execution_, membership, join, now);
}

void Npu::issue_access(NodeId id, Time now) {
  const Context& context = execution_.context();
  const trace::Node& node = execution_.node(id);
  const Bytes size(node.size);
  if (context.memory.num_servers() == 0) {
    const Time time = context.memory.access_time(size);
    return execution_.end_at(id, now, context.memory.takes_turns() ? own_memory_.serve(now, time) : now + time);
  }
  const auto server = context.memory.server_of(this->id());
  const Rank host = context.hosting.of_server[server];
  execution_.awaited().add(awaited_by(id));
  // The memory servers set the kind.
  const pdes::Event request =
      execution_.make_event(now + context.fraction, pdes::Stage::server, LpId(context.first_server.value() + server),
                            EventKind::complete, id.value(), size.count());
  if (!node.is_of_group() && context.memory.orders_requests()) {
    memory::GroupAccess alone;
    alone.size = size;
    const bool may_end_now = context.memory.may_take_no_time() && context.memory.access_time(size) == Time::zero() &&
                             context.fraction < memory::last_wait_within_ns;
    alone.place = execution_.order().next_access(id, may_end_now, now);
    return context.services.memory_servers.ask(host, request, alone);
  }
  if (!node.is_of_group()) return context.services.memory_servers.ask(host, request);
  const std::uint32_t use = execution_.npu().program->use_of_node(id);
  context.services.memory_servers.ask(host, request,
                                      {execution_.npu().trace->id_of(id),
                                       size,
                                       execution_.npu().groups[use],
                                       context.services.communicators.join_access(memberships_[use]),
                                       memberships_[use].members,
                                       node.kind,
                                       node.collective,
                                       {}});
}

void Npu::announce(const communicator::Completion& completion) {
  const NodeId id = completion.node;
  execution_.awaited().remove(awaited_by(id));
  RunningNode& running = execution_.running(id);
  running.finish = completion.time;
  running.last = completion.last;
  execution_.order().note_end(*this, completion);
  if (completion.time == Time::max()) [[unlikely]]
    execution_.accounting().note_overrun(id, running.start, Overrun::Quantity::time);
  execution_.accounting().count_sent(id, running.start, completion.sent);
}

/// Returns what the end of a collective or a memory access depends on.
pdes::Awaited Npu::awaited_by(NodeId id) const {
  const trace::Node& node = execution_.node(id);
  if (!node.is_of_group()) return {.replies = true};
  const auto& membership = this->membership(id);
  if (node.is_access()) return {.here = membership.local_participants > 1, .replies = true};
  return {.here = membership.local_participants > 1, .replies = membership.is_remote};
}

pdes::Awaited Npu::awaits() const {
  return has_broken_off_ ? messaging_->awaited_by_undecided() : execution_.awaited().awaited();
}

void Npu::list_waits(std::vector<Wait>& waits) const {
  for (const RunningNode& running : execution_.all_running())
    if (running.finish == Time::max()) waits.push_back(wait_of(running));
  messaging_->for_each_posted([&](ChannelKey channel, const PostedReceive& receive) {
    waits.push_back({.npu = id(),
                     .node = receive.node,
                     .since = receive.since,
                     .partner = channel.other,
                     .tag = channel.tag,
                     .size = Bytes(execution_.node(receive.node).size),
                     .group = {}});
  });
}

Wait Npu::wait_of(const RunningNode& running) const {
  const trace::Node& node = execution_.node(running.node);
  Wait wait{
      .npu = id(), .node = running.node, .since = running.start, .partner = {}, .size = Bytes(node.size), .group = {}};
  if (node.is_of_group()) {
    wait.is_access = node.is_access();
    const auto joined = execution_.context().services.communicators.joined(membership(running.node), wait.is_access);
    wait.in_collective = true;
    wait.group = joined.group;
    wait.ordinal = joined.ordinal;
    wait.members = joined.members;
    wait.blocks = blocks_->waits(running.node);
  } else if (node.kind == NodeKind::send) {
    const ChannelKey channel = channel_of(execution_.npu(), running.node);
    wait.partner = channel.other;
    wait.tag = channel.tag;
  }
  return wait;
}

void Npu::serialize(Archive& archive, std::span<const pdes::Event> pending, const ResumedFrom* resumed_from) {
  ensure(!has_broken_off_, "an NPU in the middle of a time at a checkpoint");
  archive(execution_, own_memory_, next_turn_, has_settled_, has_ended_);
  if (execution_.context().options.network.circuits) archive(circuits_);
  execution_.order().serialize_kept(archive);
  if (archive.reads()) take_over(execution_, resumed_from);
  contention_->serialize(archive);
  std::vector<pdes::Event> all(pending.begin(), pending.end());
  const std::span<const pdes::Event> kept = execution_.order().kept();
  all.insert(all.end(), kept.begin(), kept.end());
  messaging_->serialize(execution_, archive, all, resumed_from);
  collectives_->serialize(execution_, memberships_, archive);
  blocks_->serialize(execution_, memberships_, archive);
  contention_->serialize_sms(archive);
  auto& communicators = execution_.context().services.communicators;
  for (auto one = memberships_.begin(); one != memberships_.end(); ++one) {
    const auto is_same = [&](const communicator::Membership& other) {
      return other.communicator == one->communicator && other.participant == one->participant;
    };
    if (std::none_of(memberships_.begin(), one, is_same)) communicators.serialize(*one, archive);
  }
  if (!archive.reads()) return;
  for (const RunningNode& running : execution_.all_running())
    if (const trace::Node& node = execution_.node(running.node);
        running.finish == Time::max() &&
        (node.is_access() || (node.kind == NodeKind::collective && !collectives_->are_here())))
      execution_.awaited().add(awaited_by(running.node));
}

void Npu::stop(Time now) {
  if (!is_done()) execution_.accounting().stop(now);
}

void Npu::list_requests(std::vector<gpu::RequestRecord>& requests) const {
  std::ranges::copy(blocks_->sent(id()), std::back_inserter(requests));
}

NpuRecord Npu::record() const {
  NpuRecord record = accounting().record();
  record.nodes_completed = completed();
  return record;
}

}  // namespace orrery::npu
