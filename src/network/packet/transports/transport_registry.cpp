#include "transport_registry.hpp"

namespace orrery::network {

TransportSide make_roce(const NodeServices& services);
TransportSide make_uec(const NodeServices& services);

TransportSide make_transport(const NodeServices& services) {
  return services.system.rules.transport == PacketTransport::uec ? make_uec(services) : make_roce(services);
}

}  // namespace orrery::network
