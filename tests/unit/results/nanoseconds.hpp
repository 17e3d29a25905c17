#pragma once

#include <cstdint>

#include "orrery/base/time.hpp"

namespace orrery::results {

constexpr Time ns(std::int64_t count) { return Time::from_ns(count); }

}  // namespace orrery::results
