#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::workload {

// Each throws Error (bad_input) that names the key of CONFIG.yaml.

/// Refuses the value of a key.
[[noreturn]] void refuse(std::string_view key, std::uint64_t found, std::string_view expected);
/// Requires a value of 1 or more.
void require_positive(std::string_view key, std::uint64_t value);
/// Throws Error (bad_input) about the degree of parallelism under `key` unless it divides the value, which `what`
/// names; the message lists degrees that do.
void require_divides(std::string_view key, std::uint64_t degree, std::uint64_t value, std::string_view what);
/// Requires that `divisor` things called `by` can share `value` evenly.
void require_multiple(std::string_view key, std::uint64_t value, std::string_view by, std::uint64_t divisor);
/// Requires that what follows from `count`, which is a number of FLOPs or parameters, fits 64 bits.
void require_countable(std::string_view key, std::string_view what, double count);

}  // namespace orrery::workload
