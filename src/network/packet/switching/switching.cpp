#include "switching.hpp"

namespace orrery::network {

void PacketSwitching::arrive(std::uint32_t node, std::uint32_t number, std::uint32_t slot) {
  Port& in = services_.ports.at(node, number);
  Packet& packet = services_.packets[slot];
  if (in.is_down) return services_.ports.drop(in, slot);
  if (packet.is_pfc_frame()) return services_.ports.obey(in, slot);
  if (packet.destination == node) {
    queues_.pass(in, packet);
    if (packet.is_of_reduction()) [[unlikely]]
      return reductions_->receive(in, slot);
    return hosts_.receive(in, slot);
  }
  packet.port = static_cast<std::uint16_t>(number);
  Port* const out = services_.hops.find(node, packet);
  if (out == nullptr) {
    queues_.pass(in, packet);
    return services_.ports.drop(in, slot);
  }
  queues_.admit(in, *out, slot);
}

void PacketSwitching::fail_link(std::uint32_t node, std::uint32_t link) {
  const auto ends = services_.system.graph.ports(node);
  for (std::uint32_t number = 0; number < ends.size(); ++number)
    if (ends[number].link == link) services_.ports.fail_link(services_.ports.at(node, number));
}

}  // namespace orrery::network
