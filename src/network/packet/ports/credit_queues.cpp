#include "credit_queues.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"
#include "packet/port_observer.hpp"

namespace orrery::network {

// ---- Packets ----

void CreditQueues::admit(Port& in, Port& out, std::uint32_t slot) {
  Ports& ports = services_.ports;
  const Packet& packet = services_.packets[slot];
  credits_.held(ports.index_of(in), packet.channel) += packet.size;
  ports.enqueue(out, slot);
}

void CreditQueues::serve(Port& out) {
  if (!may_send(out, out.queue)) return;
  const std::uint32_t slot = take(out);
  Packet& packet = services_.packets[slot];
  marks_.mark(out, packet);
  marks_.append_telemetry(out, packet);
  send(out, slot);
}

void CreditQueues::send(Port& out, std::uint32_t slot) {
  const std::size_t index = services_.ports.index_of(out);
  Packet& packet = services_.packets[slot];
  packet.channel = channel_for(out, packet) & 0xfU;
  credits_.left(index, packet.channel) -= packet.size;
  ensure(credits_.left(index, packet.channel) >= 0 || out.is_down, "a packet is sent without credit");
  out.done.credit_wait += credits_.end_wait(index, services_.events.now());
  services_.ports.transmit(out, slot);
}

/// Gives back the credit of the packet, which begins to leave the node or is dropped there.
std::uint32_t CreditQueues::take(Port& out) {
  Ports& ports = services_.ports;
  const std::uint32_t slot = ports.dequeue(out);
  const Packet& packet = services_.packets[slot];
  const Port& in = ports.at(out.node, packet.port);
  credits_.held(ports.index_of(in), packet.channel) -= packet.size;
  return_credit(in, packet);
  return slot;
}

// ---- Credit ----

/// Returns the channel on which a packet takes the next link. The hash of the flow chooses one channel for all links.
/// In a network with links that turn channels it chooses a pair, of which packets take the second channel behind such
/// links.
std::uint8_t CreditQueues::channel_for(const Port& out, const Packet& packet) const {
  const std::uint32_t channels = credits_.num_channels();
  if (channels == 1) return 0;
  const std::uint64_t hash = mix(mix(packet.source, packet.destination), packet.ports) >> 32U;
  if (!credits_.has_turns()) return static_cast<std::uint8_t>(hash % channels);
  const PacketGraph& graph = services_.system.graph;
  const PacketGraph::Link& link = graph.link_of(graph.ports(out.node)[out.number]);
  bool is_turned = link.turns_channel;
  if (!is_turned && packet.source != out.node)
    is_turned =
        graph.link_of(graph.ports(out.node)[packet.port]).dimension == link.dimension && packet.channel % 2 == 1;
  return static_cast<std::uint8_t>(hash % (channels / 2) * 2 + (is_turned ? 1 : 0));
}

/// Finds the first packet of a queue whose channel has credit for it, and puts it to the front. Packets of one channel
/// do not overtake each other.
bool CreditQueues::may_send(Port& out, PacketQueue& queue) {
  const std::size_t index = services_.ports.index_of(out);
  const std::uint32_t all = (1U << credits_.num_channels()) - 1;
  if (out.is_down) return true;  // a link that has failed loses all packets
  PacketStore& packets = services_.packets;
  std::uint32_t stopped = 0, before = no_slot;
  std::size_t place = 0;
  for (std::uint32_t slot = queue.first; slot != no_slot && stopped != all;
       before = slot, ++place, slot = packets[slot].next) {
    const std::uint8_t channel = channel_for(out, packets[slot]);
    if ((stopped >> channel & 1U) != 0) continue;
    if (packets[slot].size > credits_.left(index, channel)) {
      stopped |= 1U << channel;
      continue;
    }
    if (before == no_slot) return true;
    queue.advance(packets, before);
    if (&queue == &out.queue) services_.ports.observer().overtook(out, place);
    return true;
  }
  credits_.begin_wait(index, services_.events.now());
  return false;
}

bool CreditQueues::may_send(const Port& out, const NextPacket& next) {
  if (out.is_down) return true;
  const std::size_t index = services_.ports.index_of(out);
  const Packet packet = next.head();
  if (static_cast<std::int64_t>(packet.size) <= credits_.left(index, channel_for(out, packet))) return true;
  credits_.begin_wait(index, services_.events.now());
  return false;
}

void CreditQueues::return_credit(const Port& in, const Packet& packet) {
  NodeEvents& events = services_.events;
  pdes::Event returned = events.make(in.node, in.peer.node, events.now() + std::max(in.delay, least_link_delay));
  returned.kind = NodeEvents::credit;
  returned.reserved = static_cast<std::uint16_t>(in.peer.port);
  returned.node = packet.channel;
  returned.detail = packet.size;
  events.send(in.peer.node, returned);
}

void CreditQueues::take_credit(const pdes::Event& event) {
  Port& out = services_.ports.at(services_.events.node_of(event), event.reserved);
  const std::size_t index = services_.ports.index_of(out);
  credits_.left(index, event.node) += static_cast<std::int64_t>(event.detail);
  if (credits_.waits(index)) services_.ports.kick(out);
}

// ---- The end of a run ----

CreditWait CreditQueues::wait_of(const Port& out, const Packet& packet) const {
  const Ports& ports = services_.ports;
  const std::uint64_t channels = credits_.num_channels();
  const Port& in = ports.at(out.node, packet.port);
  const std::uint8_t channel = channel_for(out, packet);
  return {ports.index_of(ports.at(in.peer.node, in.peer.port)) * channels + packet.channel,
          ports.index_of(out) * channels + channel,
          in.peer.node,
          out.node,
          out.peer.node,
          channel};
}

std::vector<CreditWait> CreditQueues::credit_waits() const {
  std::vector<CreditWait> waits;
  const Ports& ports = services_.ports;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Port& out = ports[i];
    if (!services_.events.is_here(out.node)) continue;
    for (std::uint32_t slot = out.queue.first; slot != no_slot; slot = services_.packets[slot].next)
      if (const CreditWait wait = wait_of(out, services_.packets[slot]); waits.empty() || waits.back() != wait)
        waits.push_back(wait);
  }
  std::ranges::sort(waits);
  const auto same = std::ranges::unique(waits);
  waits.erase(same.begin(), same.end());
  return waits;
}

/// Returns the bytes that wait at the end of each link, by port and channel.
std::vector<std::int64_t> CreditQueues::waiting_bytes() const {
  const Ports& ports = services_.ports;
  std::vector<std::int64_t> waiting(ports.size() * credits_.num_channels());
  for (std::size_t i = 0; i < ports.size(); ++i)
    for (std::uint32_t slot = ports[i].queue.first; slot != no_slot; slot = services_.packets[slot].next) {
      const Packet& packet = services_.packets[slot];
      const std::size_t in = ports.index_of(ports.at(ports[i].node, packet.port));
      waiting[in * credits_.num_channels() + packet.channel] += packet.size;
    }
  return waiting;
}

std::string CreditQueues::find_leak(bool) const {
  const Ports& ports = services_.ports;
  const std::vector<std::int64_t> waiting = waiting_bytes();
  for (std::size_t index = 0; index < ports.size(); ++index) {
    const Port& port = ports[index];
    for (std::uint32_t channel = 0; services_.events.is_here(port.node) && channel < credits_.num_channels();
         ++channel) {
      const std::int64_t there = waiting[index * credits_.num_channels() + channel];
      if (credits_.held(index, channel) != there)
        return fmt::format("port {} of node {} holds credit for {} bytes on channel {}, and {} bytes wait", port.number,
                           port.node, credits_.held(index, channel), channel, there);
      const std::size_t peer = ports.index_of(ports.at(port.peer.node, port.peer.port));
      const std::int64_t sent = credits_.whole(index) - credits_.left(index, channel);
      if (sent != (services_.events.is_here(port.peer.node) ? credits_.held(peer, channel) : 0))
        return fmt::format("port {} of node {} lacks credit for {} bytes on channel {}, which are not at node {}",
                           port.number, port.node, sent, channel, port.peer.node);
    }
  }
  return {};
}

}  // namespace orrery::network
