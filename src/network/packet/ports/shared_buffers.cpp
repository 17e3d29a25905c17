#include "shared_buffers.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace orrery::network {

/// Returns how many bytes the port may have in the shared buffer now.
std::int64_t SharedBuffers::threshold(const Port& port) const {
  const SwitchBuffer& buffer = services_.ports.buffer(port.node);
  return (buffer.size - buffer.used) >> port.ingress.shift;
}

/// Returns how many bytes of the shared buffer the port has.
std::int64_t SharedBuffers::used(const Port& port) const {
  return std::max<std::int64_t>(port.ingress.bytes - services_.system.rules.reserve, 0);
}

/// Counts a packet in the buffer of a switch, and pauses the peer if the port has filled its share. Returns false if
/// there is no room for the packet.
bool SharedBuffers::count(Port& in, std::uint32_t bytes) {
  const std::int64_t reserve = services_.system.rules.reserve, size = bytes;
  if (size + in.ingress.headroom > in.ingress.headroom_size && size + used(in) > threshold(in)) return false;
  const std::int64_t filled = in.ingress.bytes + size;
  if (filled <= reserve) {
    in.ingress.bytes = filled;
  } else if (filled - reserve > threshold(in)) {
    in.ingress.headroom += size;
  } else {
    in.ingress.bytes = filled;
    services_.ports.buffer(in.node).used += std::min(size, filled - reserve);
  }
  pause_if_full(in);
  return true;
}

void SharedBuffers::pause_if_full(Port& in) {
  const bool is_full = services_.system.rules.pauses && !in.ingress.pauses_peer &&
                       (in.ingress.headroom > 0 || used(in) >= threshold(in));
  if (is_full) {
    services_.ports.send_frame(in, Packet::Kind::pause);
    in.ingress.pauses_peer = true;
  }
}

void SharedBuffers::admit(Port& in, Port& out, std::uint32_t slot) {
  Ports& ports = services_.ports;
  if (!ports.is_host(in) && !count(in, services_.packets[slot].size)) return ports.drop(in, slot);
  ports.enqueue(out, slot);
}

/// Counts the packet outside the headroom, which belongs to the packets that come after a pause.
void SharedBuffers::admit_made(Port& in, Port& out, std::uint32_t slot) {
  const std::int64_t before = used(in);
  in.ingress.bytes += services_.packets[slot].size;
  services_.ports.buffer(in.node).used += used(in) - before;
  pause_if_full(in);
  services_.ports.enqueue(out, slot);
}

void SharedBuffers::serve(Port& out) {
  Ports& ports = services_.ports;
  const std::uint32_t slot = ports.dequeue(out);
  Port& in = ports.at(out.node, services_.packets[slot].port);
  const auto size = static_cast<std::int64_t>(services_.packets[slot].size);
  const std::int64_t from_headroom = std::min(in.ingress.headroom, size);
  const std::int64_t from_shared = std::min(size - from_headroom, used(in));
  in.ingress.headroom -= from_headroom;
  in.ingress.bytes -= size - from_headroom;
  ports.buffer(out.node).used -= from_shared;
  marks_.mark(out, services_.packets[slot]);
  if (in.ingress.pauses_peer && in.ingress.headroom == 0) {
    const std::int64_t left = used(in);
    if (left == 0 || left + services_.system.rules.resume_offset <= threshold(in)) {
      in.ingress.pauses_peer = false;
      ports.send_frame(in, Packet::Kind::resume);
    }
  }
  marks_.append_telemetry(out, services_.packets[slot]);
  ports.transmit(out, slot);
}

std::string SharedBuffers::find_leak(bool has_waiting) const {
  if (has_waiting) return {};
  const Ports& ports = services_.ports;
  for (std::size_t i = 0; i < ports.size(); ++i)
    if (const Port& port = ports[i]; port.ingress.bytes != 0 || port.ingress.headroom != 0)
      return fmt::format("port {} of node {} counts {} bytes that have left", port.number, port.node,
                         port.ingress.bytes + port.ingress.headroom);
  for (std::uint32_t node = 0; node < services_.system.graph.num_nodes(); ++node)
    if (const std::int64_t used = ports.buffer(node).used; used != 0)
      return fmt::format("a buffer counts {} bytes that have left", used);
  return {};
}

extern const DisciplineType shared_buffer_discipline;
constinit const DisciplineType shared_buffer_discipline{
    .name = "shared-buffer",
    .help = "the ports of a switch share its buffer, and pause the ports before them when it fills",
    .make = [](const NodeServices& services) -> std::unique_ptr<QueueDiscipline> {
      return std::make_unique<SharedBuffers>(services);
    },
    .shares_buffers = true,
    .marks = true,
};

}  // namespace orrery::network
