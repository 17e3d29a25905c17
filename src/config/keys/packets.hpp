#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "keys.hpp"
#include "orrery/network/packet_rules.hpp"
#include "section.hpp"

namespace orrery::config {

/// Returns a bandwidth in whole bits per second, the nearest ones.
std::uint64_t as_bit_rate(const Value& value, const std::string& key);

/// Returns the type of rates that are kept in whole bits per second.
Type<std::uint64_t> bit_rate();

/// Returns the type of sizes that are kept as a number of bytes.
template <class Count>
Type<Count> byte_count(std::uint64_t minimum) {
  const Type<Bytes> bytes = size(minimum, "1000 B");
  return {bytes.info,
          [bytes](const Value& value, const std::string& key, const Reading& reading) {
            const std::uint64_t count = bytes.read(value, key, reading).count();
            if (count <= std::numeric_limits<Count>::max()) return static_cast<Count>(count);
            throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
                        fmt::format("at most {} B", std::numeric_limits<Count>::max()));
          },
          [](const Count& count) -> std::optional<std::string> { return fmt::format("{} B", count); }};
}

/// Returns how a number of bytes is read that follows from the network if it is not given.
Handling<Configuration> optional_bytes(std::string key, std::uint64_t minimum,
                                       std::optional<std::uint64_t> network::PacketRules::*member);

/// A rule of packets that another one excludes, or leaves without effect.
struct Contradiction {
  std::string key;  ///< to which the fault belongs
  std::string found, expected;
};
/// Finds one, in a network with the links of shapes or with those of a graph.
std::optional<Contradiction> contradiction_of(const network::PacketRules& rules, bool has_graph);

}  // namespace orrery::config
