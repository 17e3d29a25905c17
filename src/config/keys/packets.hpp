#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orrery/network/packet_rules.hpp"
#include "section.hpp"

namespace orrery::config {

/// Returns a bandwidth in whole bits per second, the nearest ones.
std::uint64_t as_bit_rate(const Value& value, const std::string& key);

/// A congestion control (system.network.packets.control) that does not belong to the transport.
struct TransportFault {
  std::string found, expected;
};
std::optional<TransportFault> fault_of_transport(const network::PacketRules& rules);

}  // namespace orrery::config
