#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::explore {

/// What kind of quantity a number is: powers of bytes, seconds, FLOPs, USD and joules. All are 0 for a plain number.
struct PhysicalDimension {
  std::array<std::int8_t, 5> powers{};

  friend bool operator==(const PhysicalDimension&, const PhysicalDimension&) = default;
};

/// Returns the dimension of a unit of quantities ("GB/s", "us", "%") or of metrics ("byte", "1/USD", "W"); nothing for
/// another text. FLOPS are FLOPs per second.
std::optional<PhysicalDimension> dimension_of_unit(std::string_view unit);
/// Returns the dimension of a quantity such as "80 GB"; nothing for a number without a unit, which may be anything.
std::optional<PhysicalDimension> dimension_of_quantity(std::string_view text);
/// Returns the unit of a dimension: "byte/s", or "1 (a plain number)".
std::string to_text(const PhysicalDimension& dimension);

}  // namespace orrery::explore
