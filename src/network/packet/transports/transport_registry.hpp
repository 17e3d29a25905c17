#pragma once

#include "host_transport.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

TransportSide make_transport(const NodeServices& services);

}  // namespace orrery::network
