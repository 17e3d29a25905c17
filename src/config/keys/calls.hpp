#pragma once

#include "keys.hpp"

namespace orrery::config {

/// Adds the keys of workload::Calls: how software makes ZeRO 3's collectives.
void add_calls(Keys<workload::Parallel>& keys);

}  // namespace orrery::config
