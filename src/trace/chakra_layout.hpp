#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace orrery::trace {

/// How a Chakra file lays out its nodes.
enum class ChakraLayout : std::uint8_t {
  current,  ///< versions 0.0.4 and 1.0.0
  v0_0_1,
  v0_0_2,  ///< as 0.0.3, but without METADATA among the node types
  v0_0_3,
};

/// Returns the layout of a file that begins with these bytes, or nothing if its first message cannot be one of Chakra.
/// The first message that tells a layout decides; a file in which none does has the current one.
std::optional<ChakraLayout> chakra_layout(std::string_view beginning);

/// Says whether a first message with these bytes is GlobalMetadata: it has only fields 1 and 2, both length-delimited.
bool is_metadata(std::span<const std::uint8_t> message);

/// Returns the precision of the arithmetic that GlobalMetadata name in their attribute `precision`; empty if they do
/// not.
std::string_view precision_in(std::span<const std::uint8_t> metadata);

}  // namespace orrery::trace
