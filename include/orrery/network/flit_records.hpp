#pragma once

#include <cstdint>

#include "orrery/base/time.hpp"

namespace orrery::network {

/// What a link of a dimension that is simulated flit by flit has done.
struct FlitRecord {
  enum class Kind : std::uint8_t { router_to_router, router_to_npu, npu_to_router };

  std::uint32_t dimension = 0;     ///< the first of the dimensions that are simulated together
  std::uint32_t from = 0, to = 0;  ///< NPUs at the routers that it joins
  Kind kind = Kind::router_to_router;
  std::uint64_t flits = 0;
  std::uint64_t starved = 0;    ///< cycles in which a flit waited for it and had no credit
  std::uint64_t occupancy = 0;  ///< flits in the buffer behind it or on their way there, summed over cycles
  std::uint32_t peak = 0;       ///< most of these flits at a time
  std::uint64_t waiting = 0;    ///< npu_to_router: most flits at a time that waited for injection
  Time cycle;
};

}  // namespace orrery::network
