// Rates at which units of NPUs, which each dimension divides, send to the other NPUs.
#include <algorithm>
#include <limits>

#include "orrery/network/network_figures.hpp"

namespace orrery::network {
namespace {

constexpr std::size_t most_arcs = 30'000;  ///< arcs of a network whose flows are computed before each run
constexpr double bits_of_byte = 8;

}  // namespace

std::vector<DimensionCut> cuts_of(const NetworkArcs& network, std::span<const topology::Dimension> dimensions,
                                  std::uint32_t first) {
  if (network.arcs.size() > most_arcs) return {};
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  std::vector<DimensionCut> cuts(dimensions.size(), {unlimited, unlimited});
  std::uint32_t stride = 1;
  for (std::uint32_t d = 0; d < dimensions.size(); ++d) {
    const std::uint32_t size = dimensions[d].size;
    NetworkArcs own = d >= first ? network : NetworkArcs();
    std::erase_if(own.arcs, [d](const NetworkArcs::Arc& arc) {
      return arc.dimension != NetworkArcs::Arc::any_dimension && arc.dimension != d;
    });
    for (std::uint32_t units = 1; d >= first && units < size; ++units) {
      if (size % units != 0) continue;
      const std::uint32_t inside = units * stride;
      std::vector<bool> is_source(network.num_npus, false);
      std::fill_n(is_source.begin(), inside, true);
      const double flow = maximum_flow(own, is_source) / bits_of_byte;
      // Of what an NPU sends to others of its group, so much leaves the units.
      const double leaving = static_cast<double>(size - units) / (size - 1);
      cuts[d].of_npu = std::min(cuts[d].of_npu, flow / (inside * leaving));
      cuts[d].of_unit = std::min(cuts[d].of_unit, flow);
    }
    stride *= size;
  }
  return cuts;
}

}  // namespace orrery::network
