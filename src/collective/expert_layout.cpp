#include "expert_layout.hpp"

#include <algorithm>
#include <limits>
#include <set>

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

/// Returns what a member sends over all of its links in a dimension, bytes per second.
double rate(const topology::Dimension& dimension, std::uint32_t members) {
  const double links = dimension.bandwidth_of_links().bytes_per_ns() * 1e9 / std::max(dimension.oversubscription, 1.0);
  if (dimension.shape->pattern == topology::TrafficPattern::all_pairs) return links * (members - 1);
  return dimension.shape->pattern == topology::TrafficPattern::neighbours ? 2 * links : links;
}

}  // namespace

ExpertGroup expert_group(const topology::Topology& topology, const GroupLayout& layout, std::uint32_t nodes,
                         std::uint32_t node_dimensions) {
  const auto along = members_along(topology, layout);
  constexpr double unlimited = std::numeric_limits<double>::infinity();
  ExpertGroup group{layout.num_members, nodes, unlimited, unlimited};
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    double& slowest = d < node_dimensions ? group.link : group.nic;
    if (along[d] > 1) slowest = std::min(slowest, rate(topology.dimension(d), along[d]));
  }
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
