#include "npu.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "noise.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/kind.hpp"

namespace orrery::npu {

using trace::NodeKind;

Npu::Npu(const NpuSpec& spec, const Lookahead& lookahead, std::vector<communicator::Communicators::Seat> seats,
         std::optional<Overrun>& overrun)
    : id_(spec.id),
      trace_(*spec.trace),
      program_(*lookahead.program),
      lookahead_(lookahead),
      folded_(spec.folded),
      seats_(std::move(seats)),
      overrun_(overrun),
      groups_(spec.groups) {}

std::uint16_t Npu::resource_of(NodeId id) const {
  if (const auto stream = node(id).stream; stream > 0) return static_cast<std::uint16_t>(num_resources + stream - 1);
  switch (node(id).kind) {
    case NodeKind::cpu:
      return cpu;
    case NodeKind::compute:
      return compute;
    case NodeKind::receive:
      return unlimited;
    default:
      return communication;
  }
}

void Npu::start(const Options& options) {
  free_ = {1, options.compute_streams, options.comm_streams, ~0U};
  free_.resize(num_resources + program_.graph->num_streams, 1);
  ready_.resize(free_.size());
  iterations_ = options.iterations;
  speed_ = options.speed_of(id_);
  record_iterations_ = options.record_iterations;
  keep_timeline_ = options.timeline;
  comm_order_ = options.comm_order;
  if (!program_.graph->tensors.sizes.empty())
    local_memory_ =
        std::make_unique<memory::LocalMemory>(id_, program_.graph->tensors, program_.lifetimes, options.room());
  begin_iteration(Time::zero());
}

/// Nothing is done; what depends on nothing is ready.
void Npu::begin_iteration(Time now) {
  const auto n = program_.graph->num_nodes();
  if (local_memory_) local_memory_->begin_iteration(now, keep_timeline_ && is_recorded());
  missing_.restart(n, [this](std::uint32_t i) { return node(NodeId(i)).num_dependencies; });
  for (std::uint32_t i = 0; i < n; ++i) {
    if (node(NodeId(i)).num_dependencies > 0) continue;
    if (node(NodeId(i)).kind == NodeKind::instant)
      finish_node(NodeId(i), now, now);
    else
      make_ready(NodeId(i), now);
  }
}

/// Counts a node as done and releases what waited for it only. Instant nodes are done when they are released.
void Npu::finish_node(NodeId id, Time start, Time now) {
  released_.push_back(id.value());
  while (!released_.empty()) {
    const NodeId done(released_.back());
    released_.pop_back();
    ++completed_;
    if (local_memory_) {
      if (node(done).kind == NodeKind::instant) local_memory_->start(done, now);
      local_memory_->complete(done, now);
    }
    if (keep_timeline_ && is_recorded()) {
      const bool in_group = node(done).is_of_group();
      timeline_.push_back({id_, in_group ? program_.use_of_node(done) : TimelineRecord::no_group, trace_.id_of(done),
                           done == id ? start : now, now, node(done).kind, trace_.labels->names[done.index()]});
    }
    release_successors(done, now);
  }
  finish_ = now;
}

void Npu::make_ready(NodeId id, Time now) {
  const auto resource = resource_of(id);
  if (resource != communication || comm_order_ == CommOrder::lowest_id) return ready_[resource].add(id.value());
  std::int64_t rank = now.ps();
  if (comm_order_ == CommOrder::lifo) rank = -rank;
  if (comm_order_ == CommOrder::priority) rank = -std::int64_t{program_.graph->priority_of(id)};
  ranked_.add({rank, id.value()});
}

bool Npu::has_ready(std::size_t resource) const {
  return !ready_[resource].empty() || (resource == communication && !ranked_.empty());
}

NodeId Npu::take_ready(std::size_t resource) {
  return NodeId(ready_[resource].empty() ? ranked_.take().second : ready_[resource].take());
}

void Npu::release_successors(NodeId id, Time now) {
  for (const auto successor : program_.graph->successors_of(id)) {
    if (!missing_.count_down(successor)) continue;
    if (node(NodeId(successor)).kind == NodeKind::instant)
      released_.push_back(successor);
    else
      make_ready(NodeId(successor), now);
  }
}

Npu::Running& Npu::running_node(NodeId id) {
  const auto found = std::find_if(running_.begin(), running_.end(), [&](const Running& r) { return r.node == id; });
  ensure(found != running_.end(), "a node completes that is not running");
  return *found;
}

void Npu::complete(NodeId id, Time now) {
  Running& entry = running_node(id);
  const Running running = entry;
  entry = running_.back();
  running_.pop_back();
  if (running.resource != unlimited) ++free_[running.resource];
  activity_.end(work_of(node(id).kind), now);
  if (node(id).kind == NodeKind::compute) operands_ = operands_ - Bytes(node(id).size);
  finish_node(id, running.start, now);
}

void Npu::settle(Time now, const Context& context) {
  settled_ = true;
  broke_off_ = false;
  doubts_.clear();
  do {
    for (std::size_t r = 0; r < free_.size(); ++r)
      while (free_[r] > 0 && has_ready(r)) issue(take_ready(r), now, context);
    if (!doubts_.empty()) {
      broke_off_ = true;
      return context.services.kernel.linger(lp());
    }
    // Nodes that take no time hold their resource until all others of this round have been issued.
    over_.swap(instantly_);
    for (const NodeId id : over_) complete(id, now);
    const auto n = program_.graph->num_nodes();
    if (n > 0 && completed_ == (iteration_ + 1) * n && iteration_ + 1 < iterations_) {
      ++iteration_;
      begin_iteration(now);
    } else if (over_.empty()) {
      break;
    }
    over_.clear();
  } while (true);
  if (!is_done()) return;
  activity_.advance(now);
  if (local_memory_) local_memory_->end(now);
}

void Npu::take_until(NodeId id, Time now, Time finish, const Context& context) {
  Running& running = running_node(id);
  running.finish = finish;
  if (finish == Time::max()) [[unlikely]]
    return note_overrun(id, running.start, Overrun::Quantity::time);
  if (finish == now) {
    instantly_.push_back(id);
    return;
  }
  context.services.kernel.schedule(event(finish, pdes::Stage::npu, lp(), EventKind::complete, id.value()));
}

void Npu::issue(NodeId id, Time now, const Context& context) {
  if (local_memory_) local_memory_->start(id, now);
  const auto& n = node(id);
  if (n.kind == NodeKind::receive && !context.options.replay_only)
    return context.services.links ? receive_over_links(id, now, context) : issue_receive(id, now, context);
  const auto resource = resource_of(id);
  if (resource != unlimited) --free_[resource];
  running_.push_back({id, now, Time::max(), resource});
  activity_.begin(work_of(n.kind), now);
  if (n.kind == NodeKind::compute) begin_operands(id, now);
  if (context.options.replay_only) return take_until(id, now, now + program_.durations[id.index()], context);
  switch (n.kind) {
    case NodeKind::send:
      return issue_send(id, now, context);
    case NodeKind::mem_load:
    case NodeKind::mem_store:
      return issue_access(id, now, context);
    case NodeKind::collective: {
      const auto& seat = seats_[program_.use_of_node(id)];
      if (seat.members == 1) return take_until(id, now, now, context);
      if (context.services.links) return join_over_links(id, now, context);
      unknown_.add(awaited_by(id));
      context.services.communicators.join(
          seat, {id_, id, trace_.id_of(id), collective::kind_of(n.collective), Bytes(n.size), now, is_recorded()});
      return;
    }
    default:
      return take_until(id, now, now + compute_time(id, context.options), context);
  }
}

/// Of compute and CPU nodes. The draw depends on the seed, the NPU, the node and the iteration alone.
Time Npu::compute_time(NodeId id, const Options& options) const {
  Time exact = program_.durations[id.index()];
  if (node(id).kind == NodeKind::compute) exact = at_speed(exact, speed_);
  if (options.compute_noise == 0) return exact;
  const std::uint64_t bits = mix(mix(mix(options.noise_seed, id_.value()), id.value()), iteration_);
  const double draw = static_cast<double>(bits >> 11U) * 0x1p-53;  // [0, 1)
  return noisy(exact, options.compute_noise, draw);
}

pdes::Event Npu::event(Time time, pdes::Stage stage, LpId target, EventKind kind, std::uint32_t node,
                       std::uint64_t detail) {
  pdes::Event event = pdes::Event::make(time, stage, lp(), sequence_++, target);
  event.kind = static_cast<std::uint16_t>(kind);
  event.node = node;
  event.detail = detail;
  return event;
}

/// To the peer of a send or a receive, or to who stands for it.
void Npu::send(NodeId id, EventKind kind, Time time, std::uint64_t detail, const Context& context) {
  const Route to = folded_ ? folded_->routes[folded_->streams->of_node[id.index()]] : Route{peer_of(id), tag_of(id)};
  context.services.kernel.send(context.hosting.of_npu[to.npu.index()],
                               event(time, pdes::Stage::npu, LpId(to.npu.value()), kind, to.stream, detail));
}

void Npu::issue_send(NodeId id, Time now, const Context& context) {
  if (!context.options.rendezvous) return transfer(id, now, context);
  pdes::Event grant;
  if (!grants_.take({peer_of(id), tag_of(id)}, grant)) {
    unknown_.add(awaited_from(peer_of(id), context));
    return grants_.leave({peer_of(id), tag_of(id)}, id);
  }
  if (grant.time <= now) {
    context.services.kernel.raise_depth(lp(), grant.depth);
    return transfer(id, now, context);
  }
  grant.kind = static_cast<std::uint16_t>(EventKind::granted);
  grant.node = id.value();
  context.services.kernel.resume(grant);
}

void Npu::transfer(NodeId id, Time now, const Context& context) {
  if (context.services.links) return send_over_links(id, now, context);
  const Bytes size(node(id).size);
  const Time there = now + context.services.network.delay(id_, peer_of(id), size);
  context.services.network.count_message(id_, peer_of(id), size, folded_ ? folded_->count : 1);
  count_sent(id, now, size);
  if (there != Time::max()) send(id, EventKind::data, there, size.count(), context);
  take_until(id, now, there, context);
}

void Npu::issue_receive(NodeId id, Time now, const Context& context) {
  activity_.begin(Work::receive, now);
  const NpuId peer = peer_of(id);
  if (context.options.rendezvous) {
    const Time there = now + context.services.network.delay(id_, peer, collective::clear_to_send_size());
    if (there == Time::max()) return note_overrun(id, now, Overrun::Quantity::time);
    send(id, EventKind::grant, there, 0, context);
  }
  pdes::Event message;
  if (!receives_.take({peer, tag_of(id)}, message)) {
    const auto awaited = awaited_from(peer, context);
    if (!context.services.kernel.is_certain(now, awaited)) doubts_.push_back({id, awaited});
    unknown_.add(awaited);
    posted_.add(lookahead_.sends.tail(id), lookahead_.calls.tail(id));
    return receives_.leave({peer, tag_of(id)}, Posted{id, now});
  }
  if (message.time > now) {
    match(message, id, now, context);
    return context.services.kernel.resume(message);
  }
  receive_instantly(message, id, now, context);
}

/// The message came first: done in the next round of this settle, as any node that takes no time.
void Npu::receive_instantly(const pdes::Event& message, NodeId id, Time now, const Context& context) {
  require_size(id, Bytes(message.detail), context);
  context.services.kernel.raise_depth(lp(), message.depth);
  running_.push_back({id, now, now, unlimited});
  instantly_.push_back(id);
}

/// The message of a posted receive is known: it will be received at its time.
void Npu::match(pdes::Event& message, NodeId receive, Time posted, const Context& context) {
  require_size(receive, Bytes(message.detail), context);
  arriving_.add(message.time + lookahead_.sends.tail(receive), message.time + lookahead_.calls.tail(receive));
  message.kind = static_cast<std::uint16_t>(EventKind::received);
  message.node = receive.value();
  message.detail = static_cast<std::uint64_t>(posted.ps());
}

pdes::Awaited Npu::awaits() const {
  if (!broke_off_) return unknown_.awaited();
  Unknown doubtful;
  for (const Doubt& doubt : doubts_) doubtful.add(doubt.awaited);
  return doubtful.awaited();
}

/// The message of a receive has come. True if it was in doubt whether it is there already.
bool Npu::resolve(NodeId receive) {
  return std::erase_if(doubts_, [&](const Doubt& d) { return d.receive == receive; }) > 0;
}

bool Npu::admit(pdes::Event& event, const Context& context) {
  return static_cast<EventKind>(event.kind) == EventKind::data ? admit_data(event, context)
                                                               : admit_grant(event, context);
}

bool Npu::admit_data(pdes::Event& event, const Context& context) {
  const Conversation key = conversation_of(event);
  Posted posted;
  if (!receives_.take(key, posted)) {
    receives_.leave(key, event);
    return false;
  }
  unknown_.remove(awaited_from(key.other, context));
  posted_.remove();
  if (resolve(posted.node) && event.time <= posted.since) {
    receive_instantly(event, posted.node, posted.since, context);
    return false;
  }
  match(event, posted.node, posted.since, context);
  return true;
}

bool Npu::admit_grant(pdes::Event& event, const Context& context) {
  const Conversation key = conversation_of(event);
  NodeId send;
  if (!grants_.take(key, send)) {
    grants_.leave(key, event);
    return false;
  }
  unknown_.remove(awaited_from(key.other, context));
  if (const Time issued = running_node(send).start; event.time <= issued) {  // this NPU is ahead of what is certain
    context.services.kernel.raise_depth(lp(), event.depth);
    transfer(send, issued, context);
    return false;
  }
  event.kind = static_cast<std::uint16_t>(EventKind::granted);
  event.node = send.value();
  return true;
}

void Npu::receive(NodeId node, Time posted, Time now) {
  arriving_.remove();
  activity_.end(Work::receive, now);
  finish_node(node, posted, now);
}

void Npu::require_size(NodeId id, Bytes size, const Context& context) const {
  if (size.count() == node(id).size) return;
  throw Error(ErrorCode::bad_input, context.place_of(id_, trace_.id_of(id)),
              fmt::format("the receive is of {}, the message from NPU {} with tag {} is of {}",
                          counted(node(id).size, "byte"), peer_of(id).value(), tag_of(id), size.count()),
              "the same size on both sides, message by message",
              "Correct the traces: tags tell messages apart, dependencies fix their order.");
}

void Npu::issue_access(NodeId id, Time now, const Context& context) {
  const Bytes size(node(id).size);
  if (context.memory.num_servers() == 0) {
    const Time time = context.memory.access_time(size);
    return take_until(id, now, context.memory.takes_turns() ? own_memory_.serve(now, time) : now + time, context);
  }
  const auto server = context.memory.server_of(id_);
  const Rank host = context.hosting.of_server[server];
  unknown_.add(awaited_by(id));
  pdes::Event request =
      pdes::Event::make(now, pdes::Stage::server, lp(), sequence_++, LpId(context.first_server.value() + server));
  request.node = id.value();
  request.detail = size.count();
  if (!node(id).is_of_group()) return context.services.memory_servers.ask(host, request);
  const std::uint32_t use = program_.use_of_node(id);
  const communicator::Communicators::Seat& seat = seats_[use];
  context.services.memory_servers.ask(
      host, request,
      {trace_.id_of(id), size, groups_[use], context.services.communicators.join_access(seat), seat.members,
       node(id).kind, node(id).collective});
}

void Npu::announce(NodeId id, Time finish, Bytes sent) {
  unknown_.remove(awaited_by(id));
  Running& running = running_node(id);
  running.finish = finish;
  if (finish == Time::max()) [[unlikely]]
    note_overrun(id, running.start, Overrun::Quantity::time);
  count_sent(id, running.start, sent);
}

/// By a send or a receive.
pdes::Awaited Npu::awaited_from(NpuId peer, const Context& context) const {
  const bool is_here = context.hosting.of_npu[peer.index()] == context.hosting.here;
  return {.here = is_here, .sends = !is_here};
}

/// By a collective or a memory access.
pdes::Awaited Npu::awaited_by(NodeId id) const {
  if (!node(id).is_of_group()) return {.replies = true};
  const auto& seat = seats_[program_.use_of_node(id)];
  if (node(id).is_access()) return {.here = seat.local_members > 1, .replies = true};
  return {.here = seat.local_members > 1, .replies = seat.is_remote};
}

void Npu::begin_operands(NodeId id, Time now) {
  operands_ += Bytes(node(id).size);
  peak_operands_ = std::max(peak_operands_, operands_);
  if (operands_ > Bytes::most()) [[unlikely]]
    note_overrun(id, now, Overrun::Quantity::peak_memory);
}

void Npu::count_sent(NodeId id, Time now, Bytes sent) {
  sent_ += sent;
  if (sent_ > Bytes::most()) [[unlikely]]
    note_overrun(id, now, Overrun::Quantity::bytes_sent);
}

void Npu::note_overrun(NodeId id, Time since, Overrun::Quantity quantity) {
  keep_earliest(overrun_, {since, id_, id, quantity});
}

void Npu::list_waits(const communicator::Communicators& communicators, std::vector<Wait>& waits) const {
  for (const Running& running : running_) {
    if (running.finish != Time::max()) continue;
    Wait wait{.npu = id_,
              .node = running.node,
              .since = running.start,
              .partner = {},
              .size = Bytes(node(running.node).size),
              .group = {}};
    if (node(running.node).is_of_group()) {
      wait.is_access = node(running.node).is_access();
      const auto waiting = communicators.waiting(seats_[program_.use_of_node(running.node)], wait.is_access);
      wait.in_collective = true;
      wait.group = waiting.group;
      wait.ordinal = waiting.ordinal;
      wait.members = waiting.members;
    } else if (node(running.node).kind == NodeKind::send) {
      wait.partner = peer_of(running.node);
      wait.tag = tag_of(running.node);
    }
    waits.push_back(wait);
  }
  receives_.for_each_early([&](const auto& key, const Posted& posted) {
    waits.push_back({.npu = id_,
                     .node = posted.node,
                     .since = posted.since,
                     .partner = key.other,
                     .tag = key.tag,
                     .size = Bytes(node(posted.node).size),
                     .group = {}});
  });
}

void Npu::stop(Time now) {
  if (is_done() || now < finish_) return;
  activity_.advance(now);
  if (local_memory_) local_memory_->advance(now);
  finish_ = now;
}

NpuRecord Npu::record() const {
  NpuRecord record;
  record.npu = id_;
  record.finish = finish_;
  activity_.fill(record);
  record.nodes_completed = completed_;
  record.bytes_sent = sent_;
  record.peak_memory = peak_operands_;
  if (local_memory_) {
    record.peak_local_memory = local_memory_->peak();
    record.peak_local_memory_time = local_memory_->peak_time();
  }
  return record;
}

}  // namespace orrery::npu
