#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

// Each is in a file of its own in src/network/packet/transports.
extern const TransportType roce_transport, tcp_transport, uec_transport;

std::span<const TransportType* const> TransportType::registry() {
  static constexpr const TransportType* transports[] = {&roce_transport, &uec_transport, &tcp_transport};
  return transports;
}

}  // namespace orrery::network
