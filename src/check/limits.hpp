#pragma once

#include <string_view>

namespace orrery::check {

/// What times and bytes are limited by, for messages.
constexpr std::string_view longest = "106 days of simulated time, the most that a run can last";
constexpr std::string_view most_bytes = "2^63 - 1 bytes";

}  // namespace orrery::check
