#include "reductions.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

LastArrival last_of(const Packet& packet) { return {packet.stamp, NpuId(packet.ports)}; }

void set_last(Packet& packet, const LastArrival& last) {
  packet.stamp = last.time;
  packet.ports = last.npu.value();
}

}  // namespace

Reductions::Reductions(const NodeServices& services, QueueDiscipline& queues)
    : services_(services), queue_discipline_(queues), trees_(*services.system.trees), queues_(trees_.queues().size()) {
  for (std::uint32_t i = 0; i < queues_.size(); ++i) of_nodes_.emplace_back(trees_.queues()[i].node, i);
  std::ranges::sort(of_nodes_);
  for (const auto& [node, number] : of_nodes_) {
    if (nodes_.empty() || nodes_.back().done.node != std::int64_t{node}) {
      nodes_.emplace_back();
      nodes_.back().done.node = node;
    }
    queues_[number].node = static_cast<std::uint32_t>(nodes_.size() - 1);
  }
}

// ---- Hosts ----

void Reductions::begin(const ReductionRequest& request) {
  const std::uint32_t place = trees_.place_of(request.tree, request.host);
  const std::uint64_t payload = services_.system.rules.payload;
  const std::uint64_t num_packets = std::max<std::uint64_t>((request.bytes + payload - 1) / payload, 1);
  ensure(num_packets < AtSwitch::unknown, "an operation of a tree has fewer than 2^32 packets");
  AtHost operation;
  operation.id = {request.number, place};
  operation.contributed = request.contributed;
  operation.bytes = request.bytes;
  operation.num_packets = static_cast<std::uint32_t>(num_packets);
  operation.last = request.last;
  Queue& queue = queue_of(trees_[place]);
  queue.at_host.insert(std::ranges::upper_bound(queue.at_host, operation.id, {}, &AtHost::id), operation);
  send_more(queue);
}

/// Lets the first operation of a host send as far as its slots allow.
void Reductions::send_more(Queue& queue) {
  if (queue.at_host.empty()) return;
  const PacketRules& rules = services_.system.rules;
  AtHost& operation = queue.at_host.front();
  const ReductionTrees::Place& place = trees_[operation.id.place];
  const std::uint64_t most =
      std::min<std::uint64_t>(operation.num_packets, std::uint64_t{operation.back} + rules.reduction.slots);
  Port& out = services_.ports.at(place.node, place.port);
  for (; operation.sent < most; ++operation.sent) {
    const std::uint64_t first = std::uint64_t{operation.sent} * rules.payload;
    const std::uint64_t left = operation.contributed > first ? operation.contributed - first : 0;
    Packet packet;
    packet.kind = Packet::Kind::contribution;
    packet.source = place.node;
    packet.destination = trees_[place.parent].node;
    packet.flow = place.parent;
    packet.sequence = operation.id.number;
    packet.number = operation.sent;
    packet.is_last = operation.sent + 1 == operation.num_packets;
    packet.size = rules.header + static_cast<std::uint32_t>(std::min<std::uint64_t>(left, rules.payload));
    set_last(packet, operation.last);
    services_.ports.enqueue(out, services_.packets.put(packet));
  }
}

void Reductions::receive_result(std::uint32_t slot) {
  const Packet packet = services_.packets[slot];
  services_.packets.free(slot);
  const ReductionTrees::Place& place = trees_[packet.flow];
  Queue& queue = queue_of(place);
  const auto at = std::ranges::find(queue.at_host, OperationId{packet.sequence, packet.flow}, &AtHost::id);
  ensure(at != queue.at_host.end(), "a result for an operation that has not begun");
  at->last.merge(last_of(packet));
  ++at->back;
  if (at->back < at->num_packets) {
    if (at == queue.at_host.begin()) send_more(queue);
    return;
  }
  const LastArrival last = at->last;
  queue.at_host.erase(at);
  send_more(queue);
  services_.user.reduced(place.tree, place.node, packet.sequence, last);
}

// ---- Switches ----

void Reductions::receive(Port& in, std::uint32_t slot) {
  Packet& packet = services_.packets[slot];
  if (packet.kind == Packet::Kind::contribution) return add(in, slot);
  if (services_.ports.is_host(in)) return receive_result(slot);
  packet.port = static_cast<std::uint16_t>(in.number);
  spread(trees_[packet.flow], in, slot);
}

Reductions::AtSwitch& Reductions::operation_of(Queue& queue, const OperationId& id) {
  const auto at = std::ranges::lower_bound(queue.at_switch, id, {}, &AtSwitch::id);
  if (at != queue.at_switch.end() && at->id == id) return *at;
  AtSwitch operation;
  operation.id = id;
  return *queue.at_switch.insert(at, std::move(operation));
}

/// Adds a contribution. The last one takes the sum on.
void Reductions::add(Port& in, std::uint32_t slot) {
  Packet& packet = services_.packets[slot];
  const ReductionTrees::Place& place = trees_[packet.flow];
  Queue& queue = queue_of(place);
  AtSwitch& operation = operation_of(queue, {packet.sequence, packet.flow});
  operation.last.merge(last_of(packet));
  if (packet.is_last) operation.num_packets = packet.number + 1;
  const std::uint32_t at = packet.number % services_.system.rules.reduction.slots;
  if (at >= operation.slots.size()) operation.slots.resize(std::size_t{at} + 1);
  Slot& sum = operation.slots[at];
  if (sum.count == 0) {
    Node& here = node_of(queue);
    here.done.most_slots = std::max(here.done.most_slots, ++here.slots_in_use);
  }
  sum.size = std::max(sum.size, packet.size);
  if (++sum.count < place.num_children) return services_.packets.free(slot);
  packet.size = sum.size;
  packet.port = static_cast<std::uint16_t>(in.number);
  sum = {};
  complete(queue, operation, slot);
}

/// Lets a packet that is complete go on if the switch carries out its operation.
void Reductions::complete(Queue& queue, AtSwitch& operation, std::uint32_t slot) {
  const auto at = static_cast<std::size_t>(&operation - queue.at_switch.data());
  const std::uint32_t at_a_time = trees_.queues()[trees_[operation.id.place].queue].at_a_time;
  if (at >= at_a_time) return operation.complete.push(services_.packets, slot);
  send_after_delay(queue, operation, slot);
  if (operation.sent < operation.num_packets) return;
  ++node_of(queue).done.operations;
  queue.at_switch.erase(queue.at_switch.begin() + static_cast<std::ptrdiff_t>(at));
  carry_out_next(queue, at_a_time - 1);
}

/// Carries out the operation at an index, which has moved up, and those that move up because it ends.
void Reductions::carry_out_next(Queue& queue, std::size_t at) {
  while (at < queue.at_switch.size()) {
    AtSwitch& operation = queue.at_switch[at];
    while (!operation.complete.empty()) send_after_delay(queue, operation, operation.complete.pop(services_.packets));
    if (operation.sent < operation.num_packets) return;
    ++node_of(queue).done.operations;
    queue.at_switch.erase(queue.at_switch.begin() + static_cast<std::ptrdiff_t>(at));
  }
}

void Reductions::send_after_delay(Queue& queue, AtSwitch& operation, std::uint32_t slot) {
  ++operation.sent;
  ++node_of(queue).done.packets;
  set_last(services_.packets[slot], operation.last);
  NodeEvents& events = services_.events;
  const std::uint32_t node = trees_[operation.id.place].node;
  pdes::Event event = events.make(node, node, events.now() + services_.system.rules.reduction.delay);
  event.kind = NodeEvents::addition;
  event.node = slot;
  if (event.time == events.now()) return send_on(event);
  events.send_here(event);
}

void Reductions::send_on(const pdes::Event& event) {
  const std::uint32_t slot = event.node;
  Packet& packet = services_.packets[slot];
  const ReductionTrees::Place& place = trees_[packet.flow];
  --node_of(queue_of(place)).slots_in_use;
  Port& in = services_.ports.at(place.node, packet.port);
  if (place.parent == ReductionTrees::none) return spread(place, in, slot);
  packet.source = place.node;
  packet.destination = trees_[place.parent].node;
  packet.flow = place.parent;
  queue_discipline_.admit_made(in, services_.ports.at(place.node, place.port), slot);
}

/// Sends a packet of the result to each child of a switch.
void Reductions::spread(const ReductionTrees::Place& place, Port& in, std::uint32_t slot) {
  Packet packet = services_.packets[slot];
  packet.kind = Packet::Kind::result;
  packet.source = place.node;
  const auto children = trees_.children(place);
  for (std::size_t i = 0; i < children.size(); ++i) {
    packet.destination = trees_[children[i].place].node;
    packet.flow = children[i].place;
    const bool is_last = i + 1 == children.size();
    const std::uint32_t copy = is_last ? slot : services_.packets.put(packet);
    if (is_last) services_.packets[slot] = packet;
    queue_discipline_.admit_made(in, services_.ports.at(place.node, children[i].port), copy);
  }
}

// ---- The end of a run, and checkpoints ----

std::size_t Reductions::num_waiting() const {
  std::size_t sum = 0;
  for (const Queue& queue : queues_)
    for (const AtSwitch& operation : queue.at_switch) sum += operation.complete.size;
  return sum;
}

std::string Reductions::find_leak() const {
  for (const auto& [node, number] : of_nodes_) {
    const Queue& queue = queues_[number];
    const std::uint32_t slots = nodes_[queue.node].slots_in_use;
    if (!queue.at_host.empty() || !queue.at_switch.empty() || slots > 0)
      return fmt::format("node {} has {} operations of trees that are not over, and uses {} slots", node,
                         queue.at_host.size() + queue.at_switch.size(), slots);
  }
  return {};
}

void Reductions::collect(std::vector<ReductionRecord>& records) const {
  for (const Node& node : nodes_)
    if (node.done.packets > 0) records.push_back(node.done);
}

void Reductions::serialize(AtSwitch& operation, Archive& archive) {
  archive(operation.id, operation.num_packets, operation.sent, operation.last, operation.slots);
  services_.packets.serialize(operation.complete, archive);
}

void Reductions::serialize(std::uint32_t node, Archive& archive) {
  const auto of_node = std::ranges::equal_range(of_nodes_, node, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  for (const auto& [its_node, number] : of_node) {
    Queue& queue = queues_[number];
    if (number == of_node.front().second) archive(nodes_[queue.node].slots_in_use, nodes_[queue.node].done);
    archive(queue.at_host);
    std::uint64_t count = queue.at_switch.size();
    archive(count);
    if (archive.reads()) queue.at_switch.resize(count);
    for (AtSwitch& operation : queue.at_switch) serialize(operation, archive);
  }
}

}  // namespace orrery::network
