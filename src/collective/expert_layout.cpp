#include "expert_layout.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include "resources.hpp"

namespace orrery::collective {
namespace {

/// Returns how many different coordinates the members have in each dimension, on the mean over the others. [dimensions]
std::vector<std::uint32_t> members_along(const topology::Topology& topology, const GroupLayout& layout) {
  std::vector<std::uint32_t> along(topology.num_dimensions(), 1);
  for (const Axis& axis : layout.axes) along[axis.dimensions.front()] = axis.size;
  if (!layout.axes.empty()) return along;
  const Axis& whole = *layout.whole;
  for (std::size_t k = 0; k < whole.dimensions.size(); ++k) {
    std::set<std::uint32_t> different;
    for (std::uint32_t position = 0; position < whole.size; ++position) different.insert(whole.coordinate(k, position));
    along[whole.dimensions[k]] = static_cast<std::uint32_t>(different.size());
  }
  return along;
}

}  // namespace

ExpertGroup expert_group(const topology::Topology& topology, const Options& options, const GroupLayout& layout) {
  const LibraryGroup seen =
      library_group(topology, options.library, layout, sharers_of(options, layout), options.chunks.directions);
  ExpertGroup group{seen.ranks, seen.nodes, seen.link, std::numeric_limits<double>::infinity()};
  for (const OuterLink& outer : seen.outer)
    group.nic = std::min({group.nic, outer.direct * seen.nics, seen.port(outer.port)});
  return group;
}

CollectiveTraffic expert_traffic(const topology::Topology& topology, const GroupLayout& layout, const ExpertTime& time,
                                 std::uint32_t node_dimensions) {
  const auto along = members_along(topology, layout);
  CollectiveTraffic traffic(topology.num_dimensions());
  double inside = 1, outside = 1;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) (d < node_dimensions ? inside : outside) *= along[d];
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    if (along[d] == 1) continue;
    const bool is_inside = d < node_dimensions;
    const double differing = (1 - 1.0 / along[d]) / (1 - 1 / (is_inside ? inside : outside));
    const double bytes = (is_inside ? time.link_bytes : time.nic_bytes) * differing;
    traffic[d] = Bytes(static_cast<std::uint64_t>(std::min(bytes, static_cast<double>(Bytes::most().count()))));
  }
  return traffic;
}

}  // namespace orrery::collective
