#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/network/packet_rules.hpp"
#include "section.hpp"

namespace orrery::config {

/// Returns a bandwidth in whole bits per second, the nearest ones.
std::uint64_t as_bit_rate(const Value& value, const std::string& key);

/// Two rules of packets that exclude each other.
struct Contradiction {
  std::string_view key;  ///< to which the fault belongs
  std::string found, expected;
};
/// Finds one, in a network with the links of shapes or with those of a graph.
std::optional<Contradiction> contradiction_of(const network::PacketRules& rules, bool has_graph);

}  // namespace orrery::config
