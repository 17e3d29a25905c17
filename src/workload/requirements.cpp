#include "requirements.hpp"

#include <fmt/format.h>

#include <string>

#include "orrery/base/error.hpp"

namespace orrery::workload {

void refuse(std::string_view key, std::uint64_t found, std::string_view expected) {
  throw Error(ErrorCode::bad_input, {.key = std::string(key)}, fmt::format("found {}", found), expected);
}

void require_positive(std::string_view key, std::uint64_t value) {
  if (value == 0) refuse(key, value, "1 or more");
}

void require_multiple(std::string_view key, std::uint64_t value, std::string_view by, std::uint64_t divisor) {
  if (value % divisor != 0) refuse(key, value, fmt::format("a multiple of {}, which is {}", by, divisor));
}

// The largest sums are of bytes: up to 24 for each multiply-add, several operators in a node.
void require_countable(std::string_view key, std::string_view what, double count) {
  constexpr double limit = 0x1p55;
  if (!(count < limit))
    throw Error(ErrorCode::bad_input, {.key = std::string(key)}, fmt::format("{:.4g} {}", count, what),
                fmt::format("less than {:.4g}", limit));
}

}  // namespace orrery::workload
