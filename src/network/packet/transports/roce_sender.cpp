#include "roce_sender.hpp"

#include <algorithm>
#include <utility>

namespace orrery::network {

/// The next packet of a flow.
class RoceSender::NextOfFlow final : public NextPacket {
 public:
  NextOfFlow(const PacketRules& rules, const Flow& flow) : rules_(rules), flow_(flow) {}

  Packet head() const override {
    Packet packet;
    packet.source = flow_.id.source;
    packet.destination = flow_.id.destination;
    packet.ports = flow_.ports;
    const std::uint64_t payload = std::min<std::uint64_t>(rules_.payload, flow_.bytes - flow_.first_to_send());
    packet.size = static_cast<std::uint32_t>(payload) + rules_.header;
    return packet;
  }

 private:
  const PacketRules& rules_;
  const Flow& flow_;
};

void RoceSender::start_timer(Flow& flow, std::uint32_t number, Time delay) {
  NodeEvents& events = services_.events;
  pdes::Event event = events.make(flow.id.source, flow.id.source, events.now() + delay);
  event.kind = NodeEvents::flow_timer;
  event.node = flow.slot;
  event.reserved = static_cast<std::uint16_t>(number);
  event.detail = flow.timers[number] = ++state_.flows.num_wakes;
  events.send_here(event);
}

void RoceSender::send(const FlowRequest& request) {
  const PacketRules& rules = services_.system.rules;
  Flow& flow = state_.flows.add();
  flow.id = request.id;
  flow.ports = request.ports;
  flow.bytes = request.bytes;
  flow.available = services_.events.now();
  Port& out = services_.hops.first(request.id, request.ports);
  flow.rate = {.rate = out.rate,
               .line_rate = out.rate,
               .window = request.window,
               .round_trip = request.round_trip,
               .payload = rules.payload};
  if (rules.control->make != nullptr) flow.control = rules.control->make(rules.parameters);
  flow.port = out.number;
  if (rules.control->sets_window) flow.rate.hops = services_.hops.num_links(flow.id, flow.ports);
  if (rules.repeats()) flow.recovery = std::make_unique<Recovery>();
  if (services_.events.is_here(flow.id.destination))
    flow.receiver = state_.receptions.pool.put(
        {.source = flow.id.source, .flow = flow.id.number, .destination = flow.id.destination});
  state_.observer->began(flow);
  Nic& there = nic(out);
  there.flows.push_back(&flow);
  ++there.num_unsent;
  services_.ports.kick(out);
}

bool RoceSender::has_work(const Port& port) const {
  const Nic& there = state_.nics[services_.ports.host_port_of(port)];
  return there.num_unsent > 0 || !there.acknowledgements.empty();
}

/// Returns acknowledgements first, in turn with packets that pass through the host; then a packet of the next flow that
/// may send, after the flow that sent last.
std::uint32_t RoceSender::next(Port& port) {
  Nic& there = nic(port);
  if (!port.is_paused && has_next(port, there.acknowledgements)) return there.acknowledgements.pop(services_.packets);
  if (!port.is_paused && there.passes_next && has_next(port, port.queue)) {
    there.passes_next = false;
    return queues_.take(port);
  }
  there.passes_next = true;
  if (Flow* const flow = next_flow(port, there)) return make_packet(there, *flow);
  if (!port.is_paused && has_next(port, port.queue)) return next(port);
  if (there.num_unsent > 0) wake_later(port, there);
  return no_slot;
}

/// Returns the next flow that may send now; null if there is none. Takes flows that are over out of the list.
Flow* RoceSender::next_flow(const Port& port, Nic& there) {
  const PacketRules& rules = services_.system.rules;
  auto& flows = there.flows;
  const std::size_t count = flows.size();
  std::size_t chosen = count;
  bool may_be_over = there.num_unsent == 0;
  const bool window_follows_rate = rules.window_follows_rate && !rules.control->sets_window;
  for (std::size_t i = 1; i <= count && there.num_unsent > 0; ++i) {
    const std::size_t at = (i + there.last) % count;
    const Flow& flow = *flows[at];
    if (!port.is_paused && flow.has_more() && !flow.is_held(window_follows_rate)) {
      if (flow.available > services_.events.now()) continue;
      if (!queues_.may_send(port, NextOfFlow(rules, flow))) continue;
      chosen = at;
      break;
    }
    may_be_over = may_be_over || flow.is_over;
  }
  Flow* const flow = chosen < count ? flows[chosen] : nullptr;
  if (may_be_over && there.num_over > 0) {
    std::erase_if(flows, [&](const Flow* other) {
      if (other->is_over) state_.flows.free(other->slot);
      return other->is_over;
    });
    there.num_over = 0;
    chosen = static_cast<std::size_t>(std::ranges::find(flows, flow) - flows.begin());
  }
  if (flow != nullptr) there.last = chosen;
  return flow;
}

/// Returns the next packet of a flow, which is about to leave.
std::uint32_t RoceSender::make_packet(Nic& there, Flow& flow) {
  const PacketRules& rules = services_.system.rules;
  const Time now = services_.events.now();
  const bool is_again = flow.sends_again();
  const std::uint64_t first = flow.first_to_send();
  const std::uint64_t payload = std::min<std::uint64_t>(rules.payload, flow.bytes - first);
  Packet packet;
  packet.source = flow.id.source;
  packet.destination = flow.id.destination;
  packet.ports = flow.ports;
  packet.flow = flow.id.number;
  packet.sender = flow.slot;
  packet.receiver = flow.receiver;
  packet.size = static_cast<std::uint32_t>(payload) + rules.header;
  packet.sequence = first;
  packet.stamp = now;
  packet.is_last = first + payload == flow.bytes;
  packet.is_detouring = rules.routing == PacketRouting::valiant;
  if (flow.recovery) expect_news(flow);
  if (is_again)
    flow.recovery->missing.erase(first, first + payload);
  else
    flow.next += payload;
  flow.has_sent_empty = true;
  if (!flow.has_more()) --there.num_unsent;
  flow.rate.sent = flow.next;
  flow.available = now + flow.takes(packet.size, rules.tick);
  state_.observer->sends(flow);
  return services_.packets.put(packet);
}

/// Wakes the port when the first of its flows may send again.
void RoceSender::wake_later(Port& port, Nic& there) {
  const Time now = services_.events.now();
  Time least = Time::max();
  for (const Flow* const flow : there.flows)
    if (flow->has_more() && flow->available > now) least = std::min(least, flow->available);
  if (least == Time::max() || there.wakes_at != Time::max()) return;
  wake_at(port, there, least);
}

void RoceSender::wake_at(Port& port, Nic& there, Time time) {
  pdes::Event woken = services_.events.make(port.node, port.node, time);
  woken.kind = NodeEvents::port_timer;
  woken.reserved = static_cast<std::uint16_t>(port.number);
  woken.detail = there.wake = ++state_.flows.num_wakes;
  there.wakes_at = time;
  services_.events.send_here(woken);
}

void RoceSender::wake(const pdes::Event& event) {
  Port& port = services_.ports.at(services_.events.node_of(event), event.reserved);
  Nic& there = nic(port);
  if (there.wake != event.detail) return;
  there.wakes_at = Time::max();
  services_.ports.kick(port);
}

}  // namespace orrery::network
