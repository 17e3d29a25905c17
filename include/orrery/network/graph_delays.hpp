#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/network/packet_graph.hpp"

namespace orrery::network {

/// What a message alone meets on a graph between neighbours of a dimension.
struct GraphDelay {
  Time latency;            ///< most that the links of a route have
  std::uint64_t rate = 0;  ///< bits per second of the slowest link of all routes
};

/// Returns the delay of each dimension of these sizes, the innermost first: the longest and the slowest of the routes
/// that the network takes from each NPU to the next one of its group. NPU i is host i. Throws Error (bad_input) if no
/// working links lead from an NPU to the next. O(hosts * links + NPUs * dimensions * hops).
std::vector<GraphDelay> delays_of_dimensions(const GivenGraph& given, const std::vector<std::uint32_t>& sizes);

}  // namespace orrery::network
