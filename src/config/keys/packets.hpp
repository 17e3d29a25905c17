#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "contradiction.hpp"
#include "keys.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_rules.hpp"
#include "section.hpp"

namespace orrery::config {

/// Returns a bandwidth in whole bits per second, the nearest ones.
std::uint64_t as_bit_rate(const Value& value, const std::string& key);

/// The kind of sizes that are kept as a number of bytes.
template <class Count>
inline constexpr ValueKind<Count> byte_count_kind =
    kind_of<Count>([](const Limits& limits) { return size(limits.minimum, "1000 B").info(); },
                   [](const Limits& limits, const Value& value, const std::string& key, const Reading& reading) {
                     const std::uint64_t bytes = size(limits.minimum, "1000 B").read(value, key, reading).count();
                     if (bytes <= std::numeric_limits<Count>::max()) return static_cast<Count>(bytes);
                     throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                                 fmt::format("at most {} B", std::numeric_limits<Count>::max()));
                   },
                   [](const Limits&, Count bytes) { return fmt::format("{} B", bytes); });
/// Returns the type of sizes that are kept as a number of bytes.
template <class Count>
constexpr Type<Count> byte_count(std::uint64_t minimum) {
  return {byte_count_kind<Count>, {.minimum = minimum}};
}

const Words<network::PacketRouting>& routings();

/// Returns a warning of a congestion control that cannot act as it should: it acts by marks, and ports of switches mark
/// no packets; or it acts by round trips, and one packet alone takes too long over a link.
std::optional<std::string> warning_of_control(const Configuration& configuration);
/// Returns that of a list of flows.
std::optional<std::string> warning_of_control(const network::PacketGraph& graph, const network::PacketRules& rules);
/// Finds one, in a network with the links of shapes or with those of a graph.
std::optional<Contradiction> contradiction_of(const network::PacketRules& rules, bool has_graph);
/// Finds a queue of a link that has no effect, or that no packet passes.
std::optional<Contradiction> contradiction_of_links(const network::PacketGraph& graph,
                                                    const network::PacketRules& rules);
/// Finds one with reductions in switches, which lose no packets.
std::optional<Contradiction> contradiction_of_reduction(const network::PacketRules& rules);

}  // namespace orrery::config
