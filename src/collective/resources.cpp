// What the network gives a member of a group that a library serves.
#include "resources.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <vector>

namespace orrery::collective {
namespace {

constexpr double bytes_of_ns = 1e9;  ///< bytes per second of a byte per ns

/// Returns for each dimension, and for one more, how many different sets of coordinates the members have in it and
/// those above it.
std::vector<std::uint64_t> units_from(const topology::Topology& topology, const GroupLayout& layout) {
  std::vector<std::uint64_t> units(topology.num_dimensions() + 1, 1);
  if (!layout.axes.empty()) {
    std::vector<std::uint64_t> sizes(topology.num_dimensions(), 1);
    for (const Axis& axis : layout.axes) sizes[axis.dimensions.front()] = axis.size;
    for (std::size_t d = sizes.size(); d-- > 0;) units[d] = units[d + 1] * sizes[d];
    return units;
  }
  const Axis& whole = *layout.whole;
  std::size_t first = whole.dimensions.size();
  for (std::uint32_t d = topology.num_dimensions(); d-- > 0;) {
    units[d] = units[d + 1];
    if (first == 0 || whole.dimensions[first - 1] != d) continue;
    --first;
    std::set<std::vector<std::uint32_t>> different;
    for (std::uint32_t position = 0; position < whole.size; ++position) {
      std::vector<std::uint32_t> unit;
      for (std::size_t k = first; k < whole.dimensions.size(); ++k) unit.push_back(whole.coordinate(k, position));
      different.insert(std::move(unit));
    }
    units[d] = different.size();
  }
  return units;
}

/// The described network as the members of one group meet it.
class DescribedNetwork {
 public:
  DescribedNetwork(const topology::Topology& topology, const LibraryOptions& options, const GroupLayout& layout,
                   std::span<const std::uint32_t> sharers, Directions directions, std::span<const Bandwidth> bandwidths)
      : topology_(topology),
        options_(options),
        layout_(layout),
        sharers_(sharers),
        directions_(directions),
        bandwidths_(bandwidths),
        units_(units_from(topology, layout)) {}

  LibraryGroup group() const {
    const std::uint32_t first_outer = std::min(options_.node_dimensions, topology_.num_dimensions());
    LibraryGroup group{.ranks = layout_.num_members, .nodes = static_cast<std::uint32_t>(units_[first_outer])};
    for (std::uint32_t d = 0; d < first_outer; ++d) group.npus_of_node *= topology_.dimension(d).size;
    add_inner(first_outer, group);
    if (group.nodes > 1) add_outer(first_outer, group);
    return group;
  }

 private:
  bool is_used(std::uint32_t d) const { return units_[d] > units_[d + 1]; }
  double members(std::uint32_t d) const { return static_cast<double>(units_[d]) / static_cast<double>(units_[d + 1]); }
  double sharers(std::uint32_t d) const { return d < sharers_.size() ? sharers_[d] : 1; }
  topology::Port slowest(std::uint32_t d) const {
    return layout_.slowest_ports.empty() ? topology::Port{} : layout_.slowest_ports[d];
  }
  double latency(std::uint32_t d) const { return topology_.dimension(d).latency_ns * 1e-9 * slowest(d).latency; }

  /// Returns what the links side by side at one place carry, bytes per second.
  double links_rate(std::uint32_t d) const {
    const topology::Dimension& dimension = topology_.dimension(d);
    const Bandwidth link = d < bandwidths_.size() ? bandwidths_[d] : dimension.bandwidth;
    return link.bytes_per_ns() * bytes_of_ns * dimension.links * slowest(d).bandwidth;
  }
  /// Returns what a member sends into the dimension over all of its links. A failed link turns a ring into a row, and
  /// leaves a member of FullyConnected one link less.
  double rate(std::uint32_t d) const {
    const topology::Shape shape = topology_.dimension(d).shape;
    const bool has_failed = any_failed(d);
    double places = 1;
    if (shape->pattern == topology::TrafficPattern::all_pairs)
      places = std::max(members(d) - (has_failed ? 2 : 1), 1.0);
    else if (shape->pattern == topology::TrafficPattern::neighbours)
      places = has_failed || directions_ == Directions::one ? 1 : 2;
    return links_rate(d) * places;
  }
  bool any_failed(std::uint32_t d) const {
    const auto has_failed = [d](const Axis& axis) {
      return !axis.npus.empty() && std::ranges::find(axis.dimensions, d) != axis.dimensions.end();
    };
    if (!layout_.axes.empty()) return std::ranges::any_of(layout_.axes, has_failed);
    return topology_.links().has_failed(d);
  }

  void add_inner(std::uint32_t first_outer, LibraryGroup& group) const {
    double oversubscription = 1, mesh_share = 1;
    bool is_first = true;
    for (std::uint32_t d = 0; d < first_outer; ++d) {
      if (!is_used(d)) continue;
      const topology::Dimension& dimension = topology_.dimension(d);
      const bool is_switch = dimension.shape->has_switch_operations;
      oversubscription = std::max(oversubscription, dimension.oversubscription);
      group.link = std::min(group.link, rate(d) / sharers(d));
      group.has_switches = group.has_switches && is_switch;
      if (!is_first) continue;
      is_first = false;
      group.hop_latency = latency(d);
      group.hops = dimension.shape->pattern == topology::TrafficPattern::exchanges ? 2 : 1;
      const std::uint32_t mesh = options_.library ? (*options_.library)->mesh : 0;
      // A node of such GPUs that is described as a switch has the links of a mesh behind it: a group uses those among
      // its members only.
      if (is_switch && mesh > 1) mesh_share = std::min(group.of_node() - 1, mesh - 1.0) / (mesh - 1.0);
    }
    group.link *= mesh_share / oversubscription;
  }

  void add_outer(std::uint32_t first_outer, LibraryGroup& group) const {
    if (options_.nics_per_node > 0) group.nics = options_.nics_per_node / group.npus_of_node;
    double port_sharers = 1;
    for (std::uint32_t d = first_outer; d < topology_.num_dimensions(); ++d) {
      if (!is_used(d)) continue;
      const double of_member = rate(d) / sharers(d), up = of_member / topology_.dimension(d).oversubscription;
      const double below = static_cast<double>(group.ranks) / static_cast<double>(units_[d]);
      // Uplinks of a unit are pooled: a ring crosses each cut once, over all of them.
      const double ring = d == first_outer ? up : std::min(of_member, below / group.of_node() * up);
      group.outer.push_back({d, ring, up, below, below * members(d)});
      group.outer_latency = std::max(group.outer_latency, latency(d));
      port_sharers = std::max(port_sharers, sharers(d));
    }
    group.nic = links_rate(first_outer) * group.nics / port_sharers;
  }

  const topology::Topology& topology_;
  const LibraryOptions& options_;
  const GroupLayout& layout_;
  std::span<const std::uint32_t> sharers_;
  Directions directions_;
  std::span<const Bandwidth> bandwidths_;
  std::vector<std::uint64_t> units_;
};

}  // namespace

LibraryGroup library_group(const topology::Topology& topology, const LibraryOptions& options, const GroupLayout& layout,
                           std::span<const std::uint32_t> sharers, Directions directions,
                           std::span<const Bandwidth> bandwidths) {
  return DescribedNetwork(topology, options, layout, sharers, directions, bandwidths).group();
}

}  // namespace orrery::collective
