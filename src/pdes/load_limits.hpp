#pragma once

#include <cstddef>
#include <cstdint>

/// How large the record of a load may become.
namespace orrery::pdes::load_limits {

constexpr std::uint32_t cells = 1U << 22;            ///< counters of events: blocks times bins
constexpr std::uint32_t bins = 1U << 16;             ///< for a record of few blocks
constexpr std::size_t rows = std::size_t{1} << 20U;  ///< flows and replies
constexpr std::uint32_t least_bins = 256;            ///< bins do not become fewer because there are many rows

}  // namespace orrery::pdes::load_limits
