#pragma once

#include <cstdint>
#include <string>

#include "section.hpp"

namespace orrery::config {

/// Returns a bandwidth in whole bits per second, the nearest ones.
std::uint64_t as_bit_rate(const Value& value, const std::string& key);

}  // namespace orrery::config
