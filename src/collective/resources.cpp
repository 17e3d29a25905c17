// What the network gives a member of a group that a library serves.
#include "resources.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <string_view>
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

/// Returns the slowest ports of the members in the dimensions of their axes; nothing if none differs.
std::vector<topology::Port> slowest_of_axes(const topology::Topology& topology, const GroupLayout& layout) {
  std::vector<topology::Port> slowest;
  const auto look_at = [&](const Axis& axis) {
    if (axis.ports.empty()) return;
    slowest.resize(topology.num_dimensions());
    for (std::size_t k = 0; k < axis.dimensions.size(); ++k) {
      const std::uint32_t d = axis.dimensions[k];
      for (std::size_t i = 0; i < axis.members.size(); ++i)
        slowest[d] = slower(slowest[d], topology.links().port(d, axis.ports[k * axis.members.size() + i]));
    }
  };
  std::ranges::for_each(layout.axes, look_at);
  if (layout.axes.empty()) look_at(*layout.whole);
  return slowest;
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
        units_(units_from(topology, layout)),
        slowest_(layout.slowest_ports.empty() ? slowest_of_axes(topology, layout) : layout.slowest_ports) {}

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
  topology::Port slowest(std::uint32_t d) const { return slowest_.empty() ? topology::Port{} : slowest_[d]; }
  double latency(std::uint32_t d) const { return topology_.dimension(d).latency_ns * 1e-9 * slowest(d).latency; }

  Bandwidth link(std::uint32_t d) const {
    return d < bandwidths_.size() ? bandwidths_[d] : topology_.dimension(d).bandwidth;
  }
  /// Returns the bandwidth of a link over that which is described.
  double faster(std::uint32_t d) const {
    return link(d).bytes_per_ns() / topology_.dimension(d).bandwidth.bytes_per_ns();
  }
  /// Returns what the links side by side at one place carry, bytes per second.
  double links_rate(std::uint32_t d) const {
    return link(d).bytes_per_ns() * bytes_of_ns * topology_.dimension(d).links * slowest(d).bandwidth;
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

  /// Returns the name of the port through which a dimension leads; dimensions that name none share one.
  std::string_view port_of(std::uint32_t d) const {
    const topology::SharedPort* const port = topology_.ports().of(d);
    return port == nullptr ? std::string_view() : std::string_view(port->name);
  }
  /// Returns what a member sends through the port of a dimension, whose links the port has.
  double port_rate(std::uint32_t d) const {
    const topology::SharedPort* const port = topology_.ports().of(d);
    const double of_links = links_rate(d);
    if (port == nullptr || !port->is_given) return of_links;
    return std::min(of_links, port->rate.bytes_per_ns() * bytes_of_ns * slowest(d).bandwidth);
  }

  void add_outer(std::uint32_t first_outer, LibraryGroup& group) const {
    if (options_.nics_per_node > 0) group.nics = options_.nics_per_node / group.npus_of_node;
    std::vector<std::string_view> names;
    std::vector<double> rates, port_sharers;
    for (std::uint32_t d = first_outer; d < topology_.num_dimensions(); ++d) {
      if (!is_used(d)) continue;
      const double of_member = rate(d) / sharers(d);
      const double below = static_cast<double>(group.ranks) / static_cast<double>(units_[d]);
      double up = of_member / topology_.dimension(d).oversubscription;
      // Uplinks of a unit are pooled: a ring crosses each cut once, over all of them.
      double ring = d == first_outer ? up : std::min(of_member, below / group.of_node() * up);
      if (!options_.cuts.empty()) {
        const network::DimensionCut& cut = options_.cuts[d];
        up = std::min(of_member, faster(d) * cut.of_npu / sharers(d));
        ring = std::min(of_member, faster(d) * cut.of_unit / group.npus_of_node / sharers(d));
      }
      const auto port = static_cast<std::size_t>(std::ranges::find(names, port_of(d)) - names.begin());
      if (port == names.size()) {
        // Members that are all in one unit of the first dimension have the port of this dimension too.
        names.push_back(port_of(d));
        rates.push_back(port_rate(port_of(first_outer) == names.back() ? first_outer : d));
        port_sharers.push_back(1);
      }
      port_sharers[port] = std::max(port_sharers[port], sharers(d));
      group.outer.push_back({d, ring, up, below, below * members(d), static_cast<std::uint32_t>(port)});
      group.outer_latency = std::max(group.outer_latency, latency(d));
    }
    for (std::size_t port = 0; port < rates.size(); ++port) {
      const double of_member = rates[port] * group.nics / port_sharers[port];
      if (port == 0)
        group.nic = of_member;
      else
        group.further_ports.push_back(of_member);
    }
  }

  const topology::Topology& topology_;
  const LibraryOptions& options_;
  const GroupLayout& layout_;
  std::span<const std::uint32_t> sharers_;
  Directions directions_;
  std::span<const Bandwidth> bandwidths_;
  std::vector<std::uint64_t> units_;
  std::vector<topology::Port> slowest_;  ///< [dimensions] of the members; empty: none differs
};

}  // namespace

LibraryGroup library_group(const topology::Topology& topology, const LibraryOptions& options, const GroupLayout& layout,
                           std::span<const std::uint32_t> sharers, Directions directions,
                           std::span<const Bandwidth> bandwidths) {
  return DescribedNetwork(topology, options, layout, sharers, directions, bandwidths).group();
}

}  // namespace orrery::collective
