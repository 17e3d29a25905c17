#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::workload {

/// Each throws Error (bad_input) that names the key of CONFIG.yaml.
[[noreturn]] void refuse(std::string_view key, std::uint64_t found, std::string_view expected);
void require_positive(std::string_view key, std::uint64_t value);
/// `value` is to be shared evenly by `divisor` things called `by`.
void require_multiple(std::string_view key, std::uint64_t value, std::string_view by, std::uint64_t divisor);
/// FLOPs of a layer, parameters: what follows from `count` must fit 64 bits.
void require_countable(std::string_view key, std::string_view what, double count);

}  // namespace orrery::workload
