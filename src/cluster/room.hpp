#pragma once

#include <cstdint>

#include "orrery/cluster/options.hpp"
#include "orrery/cluster/placement.hpp"

namespace orrery::cluster {

/// Returns the NPUs of the largest job that fits into a pool: on a torus of the largest cube. O(log NPUs) tries.
std::uint32_t largest_job(const Pool& pool, const Places& places);

}  // namespace orrery::cluster
