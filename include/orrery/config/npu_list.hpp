#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::config {

/// NPUs first..last, both included.
struct NpuRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;

  friend bool operator==(const NpuRange&, const NpuRange&) = default;
};

/// For `num_npus` below, where it is not known yet.
constexpr std::uint32_t any_npus = std::numeric_limits<std::uint32_t>::max();

/// Reads "7" or "0-31", NPUs below `num_npus`. Throws Error (`code`, at `place`).
NpuRange parse_npu_range(std::string_view text, std::uint32_t num_npus, const Place& place,
                         ErrorCode code = ErrorCode::bad_input);

/// Reads "3,17,64-71": ascending, each NPU once, all below `num_npus`. Throws Error (`code`, at `place`).
std::vector<NpuRange> parse_npu_list(std::string_view text, std::uint32_t num_npus, const Place& place,
                                     ErrorCode code = ErrorCode::bad_input);

/// Returns the text of which parse_npu_list makes these.
std::string to_text(const std::vector<NpuRange>& ranges);

}  // namespace orrery::config
