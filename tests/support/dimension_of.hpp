#pragma once

#include "orrery/topology/dimension.hpp"

namespace orrery::topology {

/// Bandwidth in bytes/ns.
inline Dimension dimension_of(Shape shape, std::uint32_t size, double bandwidth = 10, double latency_ns = 100) {
  return {shape, size, Bandwidth::from_bytes_per_ns(bandwidth), latency_ns};
}

}  // namespace orrery::topology
