#include "trimming_queues.hpp"

namespace orrery::network {
namespace {

/// Returns whether a packet waits behind others: data whose payload is still there.
bool has_payload(const Packet& packet) { return packet.is_data() && (packet.flags & uec_flags::trimmed) == 0; }

}  // namespace

TrimmingQueues::TrimmingQueues(const NodeServices& services)
    : services_(services),
      marks_(services),
      run_(services.system.graph, services.system.router, services.system.rules),
      transmissions_(services.ports.size()) {
  for (std::size_t i = 0; i < services.ports.size(); ++i) {
    Port& port = services.ports[i];
    if (services.ports.is_host(port) || port.marking.is_on) continue;
    const bool to_host = services.system.graph.node(port.peer.node).is_host;
    port.marking = {.thresholds = run_.figures.marks, .is_on = !(run_.by_credit && to_host)};
  }
}

/// If the packet does not fit, this packet or the last one of the queue is trimmed or dropped, with equal probability.
void TrimmingQueues::admit(Port&, Port& out, std::uint32_t slot) {
  Ports& ports = services_.ports;
  const Packet& packet = services_.packets[slot];
  if (!has_payload(packet)) {
    trim(out, slot);
    return ports.kick(out);
  }
  const Service& service = transmissions_[ports.index_of(out)];
  const std::uint64_t in_service = service.until == out.free && services_.events.now() < out.free ? service.size : 0;
  if (!ports.is_host(out) && out.queue.bytes + in_service + packet.size > run_.queue_at(out.rate)) {
    if (out.queue.empty() || marks_.draw(out) >= 0.5) {
      trim(out, slot);
      return ports.kick(out);
    }
    trim(out, ports.dequeue_last(out));
  }
  ports.enqueue(out, slot);
}

/// Puts a packet into the queue that goes first, as far as there is room. A packet with data is cut down to its header.
void TrimmingQueues::trim(Port& out, std::uint32_t slot) {
  Ports& ports = services_.ports;
  Packet& packet = services_.packets[slot];
  if (has_payload(packet)) {
    if (!run_.rules.trimming) return ports.drop(ports.at(out.node, packet.port), slot);
    packet.flags |= uec_flags::trimmed;
    if (out.peer.node == packet.destination) packet.flags |= uec_flags::last_hop;
    packet.size = run_.rules.header;
    ++out.done.trims;
  }
  const bool is_full = out.frames.bytes + packet.size > 2 * run_.queue_at(out.rate);
  if (is_full && !ports.is_host(out)) return ports.drop(ports.at(out.node, packet.port), slot);
  out.frames.push(services_.packets, slot);
}

/// htsim marks a packet when its transmission ends, by the bytes that wait then. The next port knows of a packet when
/// its transmission begins, so the mark goes to the packet that follows, by the same bytes: it is one of them.
void TrimmingQueues::serve(Port& out) {
  Ports& ports = services_.ports;
  const bool follows = out.free == services_.events.now() || out.queue.size > 1;
  if (follows) marks_.mark(out, services_.packets[out.queue.first]);
  const std::uint32_t slot = ports.dequeue(out);
  const std::uint32_t size = services_.packets[slot].size;
  ports.transmit(out, slot);
  transmissions_[ports.index_of(out)] = {out.free, size};
}

void TrimmingQueues::serialize(Port& port, Archive& archive) {
  Service& service = transmissions_[services_.ports.index_of(port)];
  archive(service.until, service.size);
}

extern const DisciplineType trimming_discipline;
constinit const DisciplineType trimming_discipline{
    .name = "trimming",
    .help = "a queue for each port, which cuts packets that do not fit to their headers; of transport uec",
    .has_queues = true,
    .marks = true,
};

}  // namespace orrery::network
