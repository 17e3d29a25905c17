#include "requirements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

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

void require_divides(std::string_view key, std::uint64_t degree, std::uint64_t value, std::string_view what) {
  if (value % degree == 0) return;
  constexpr std::uint64_t most_degree = 1024;
  constexpr std::size_t most_listed = 8;
  std::vector<std::uint64_t> divisors;
  for (std::uint64_t each = 1; each <= std::min(value, most_degree) && divisors.size() < most_listed; ++each)
    if (value % each == 0) divisors.push_back(each);
  const std::string_view name = key.substr(key.rfind('.') + 1);
  throw Error(ErrorCode::bad_input, {.key = std::string(key)},
              fmt::format("{} {} does not divide {} {}", name, degree, value, what),
              fmt::format("a divisor: {}{}", fmt::join(divisors, ", "), divisors.size() == most_listed ? ", ..." : ""));
}

// The largest sums are of bytes: up to 24 for each multiply-add, several operators in a node.
void require_countable(std::string_view key, std::string_view what, double count) {
  constexpr double limit = 0x1p55;
  if (!(count < limit))
    throw Error(ErrorCode::bad_input, {.key = std::string(key)}, fmt::format("{:.4g} {}", count, what),
                fmt::format("less than {:.4g}", limit));
}

}  // namespace orrery::workload
