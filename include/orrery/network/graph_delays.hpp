#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/network/packet_graph.hpp"

namespace orrery::network {

/// A dimension that lies on a graph.
struct GraphDimension {
  enum class Partners : std::uint8_t {
    next,        ///< each NPU exchanges data with the next one of its group
    neighbours,  ///< with the next and the one before, over ports of their own
    all,         ///< with all others of its group, over ports of their own
  };
  std::uint32_t size = 0;
  Partners partners = Partners::next;
};

/// Returns the partners that a shape has on a graph; none if the shape cannot lie on one.
std::optional<GraphDimension::Partners> partners_on_graph(std::string_view shape);

/// What a message alone meets on the graph between partners of a dimension.
struct GraphDelay {
  Time latency;            ///< most that the links of a route have
  std::uint64_t rate = 0;  ///< least bits per second that the ports which lead to a partner have together
};

/// Returns the delay of each dimension, the innermost first, from the routes that the network takes. NPU i is host i.
/// Throws Error (bad_input) if no working links lead from an NPU to a partner, or if two partners that need ports of
/// their own are behind the same one. O(hosts * links + partners * hops).
std::vector<GraphDelay> delays_of_dimensions(const GivenGraph& given, const std::vector<GraphDimension>& dimensions);

}  // namespace orrery::network
