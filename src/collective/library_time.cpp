// Times of libraries on the network that is described.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "library_parts.hpp"
#include "nccl_tuning.hpp"
#include "rccl_tuning.hpp"

namespace orrery::collective {
namespace {

/// Seconds of an algorithm of the protocol LL: once, for a step within a node, and for a step between nodes. Sources:
/// NVIDIA/nccl at 5067397c and ROCm/rccl at 9e22c79d, src/graph/tuning.cc.
struct LatencyRow {
  double base, in_node, between;
};
constexpr LatencyRow ring_latencies{6.6e-6, 0.6e-6, 2.7e-6}, tree_latencies{6.8e-6, 0.6e-6, 5.0e-6},
    pat_latencies{8e-6, 2.8e-6, 14e-6 / 3.5}, rccl_latencies{12e-6, 0.8e-6, 9.5e-6};
// One send and one receive for each peer, on channels of their own: seconds of a peer in the node and outside.
constexpr double peer_in_node = 0.02e-6, peer_outside = 0.6e-6;
constexpr double reference_hop = 1e-6;  ///< latency of a hop between nodes where the fabrics were measured, s
constexpr double collnet_share = 0.9;   ///< part of the rings' share of NICs
constexpr double nvls_growth = 0.2;     ///< NVLS of fewer than 8 members reaches (p / 8) to this power
constexpr double full_nvls_members = 8;

bool is_all_gather_or_reduce_scatter(Kind kind) { return kind == Kind::all_gather || kind == Kind::reduce_scatter; }

std::uint32_t ring_steps_of(Kind kind, std::uint32_t members) {
  if (kind == Kind::all_reduce || kind == Kind::barrier) return 2 * (members - 1);
  return is_all_gather_or_reduce_scatter(kind) ? members - 1 : members;
}

/// Computes what each algorithm takes, and keeps the fastest one.
class RelativeTimes {
 public:
  RelativeTimes(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes)
      : options_(options),
        library_(**options.library),
        fabric_(fabric_of(options)),
        node_(node_shares(options)),
        nic_(nic_shares(options)),
        kind_(kind),
        group_(group),
        bytes_(bytes),
        sent_(bus_factor(kind, group.ranks) * bytes),
        step_in_node_(group.hops * std::max(0.0, group.hop_latency - library_.hop_latency)),
        step_between_(fabric_.step + std::max(0.0, 2 * (group.outer_latency - reference_hop))),
        latency_(least_latency()),
        reduces_in_switch_(node_.nvls > 0 && group.of_node() >= library_.fewest_in_switch && group.has_switches) {}

  LibraryTime fastest() {
    if (kind_ == Kind::barrier) return take("tree", {}), best_;
    if (kind_ == Kind::all_to_all) return try_direct(), best_;
    try_ring();
    if (kind_ != Kind::all_reduce) return best_;
    if (group_.nodes == 1 && reduces_in_switch_) try_nvls();
    if (group_.nodes > 1) {
      try_tree();
      if (options_.collnet) try_collnet();
    }
    return best_;
  }

 private:
  bool is_in_one_node() const { return group_.nodes == 1; }
  bool has_inner_links() const { return group_.ranks > group_.nodes; }
  const LatencyRow& row(bool is_ring) const {
    if (library_.family == LibraryFamily::rccl) return rccl_latencies;
    return is_ring ? ring_latencies : tree_latencies;
  }

  double ring_latency() const {
    const LatencyRow& of = row(true);
    const double between = is_in_one_node() ? 0 : ring_steps_of(kind_, group_.nodes);
    const double within = ring_steps_of(kind_, group_.ranks) - between;
    return of.base + within * (of.in_node + step_in_node_) + between * (of.between + step_between_);
  }
  double tree_latency() const {
    const LatencyRow& of = row(false);
    // In a mesh every member is one hop away.
    const double depth = library_.family == LibraryFamily::rccl && has_inner_links() ? 1 : group_.of_node() - 1;
    return of.base +
           2 * (depth * (of.in_node + step_in_node_) + std::log2(group_.nodes) * (of.between + step_between_));
  }
  double pat_latency() const {
    return pat_latencies.base + std::log2(group_.nodes) * (pat_latencies.between + step_between_) +
           pat_latencies.in_node * group_.ranks;
  }
  double direct_latency() const {
    const double outside = is_in_one_node() ? 0 : ring_latencies.between + step_between_;
    return ring_latencies.base + ring_latencies.in_node + step_in_node_ + outside +
           peer_in_node * (group_.of_node() - 1) + peer_outside * (group_.ranks - group_.of_node());
  }
  /// Returns the latency of the fastest algorithm of small messages, which all algorithms have.
  double least_latency() const {
    if (kind_ == Kind::all_to_all) return direct_latency();
    double least = ring_latency();
    if (kind_ == Kind::all_reduce || kind_ == Kind::barrier) least = std::min(least, tree_latency());
    if (!is_all_gather_or_reduce_scatter(kind_) || is_in_one_node()) return least;
    if (!has_inner_links()) return std::min(least, pat_latency());
    // What many steps take is in ring_floor.
    const LatencyRow& of = row(true);
    return std::min(least, of.base + (group_.of_node() - 1) * (of.in_node + step_in_node_) +
                               std::log2(group_.nodes) * (of.between + step_between_));
  }

  /// Returns how much slower a link is than where it was measured, within what the ramps are good for.
  static double scale(double rate, double reference) { return std::clamp(rate / reference, 1e-3, 1e3); }
  static double paid(const Ramp& ramp, double bytes, double scale) {
    return ramp.filling * bytes / (bytes + ramp.bytes * scale);
  }
  double ramp() const {
    if (is_in_one_node()) {
      const double slower = scale(group_.link, library_.link);
      return share_of_ramp(kind_, group_.ranks) *
             (paid(library_.small, bytes_, slower) + paid(library_.large, bytes_, slower));
    }
    return (has_inner_links() ? paid(library_.small, bytes_, 1) : 0) +
           std::log2(group_.nodes) * paid(fabric_.ramp, bytes_, scale(group_.nic, fabric_.nic));
  }

  /// Returns the least time of a ring over nodes in kinds that have no trees.
  double ring_floor(double transfer) const {
    if (is_in_one_node() || !has_inner_links() || !is_all_gather_or_reduce_scatter(kind_) ||
        library_.family == LibraryFamily::rccl)
      return 0;
    return ring_over_nodes_seconds(group_, transfer) + (group_.ranks - group_.nodes) * step_in_node_ +
           (group_.nodes - 1) * step_between_;
  }

  /// Takes the algorithm if it is the fastest one so far. `leaving`: bytes of a member that leave its node.
  void take(std::string_view algorithm, std::vector<Resource> resources, double leaving = 0) {
    std::erase_if(resources, [](const Resource& resource) { return resource.bytes <= 0; });
    LibraryTime time{.algorithm = algorithm, .latency = latency_, .leaving = leaving};
    if (!resources.empty()) {
      time.bound = *std::ranges::max_element(resources, {}, &Resource::seconds);
      time.transfer = time.bound.seconds();
      time.ramp = ramp();
    }
    const double floor = algorithm == "ring" ? ring_floor(time.transfer) : 0;
    time.seconds = std::max({options_.launch.seconds(), floor, time.latency + time.ramp + time.transfer});
    time.resources = std::move(resources);
    if (best_.algorithm.empty() || time.seconds < best_.seconds) best_ = std::move(time);
  }

  Resource links(double bytes, double share) const { return {ResourceKind::links, 0, bytes, group_.link, share}; }
  Resource nic(double bytes, double share) const { return {ResourceKind::nic, 0, bytes, group_.nic, share}; }
  /// Adds what bytes pass that leave a node for the next one, over the ports of its members.
  void add_cuts(double bytes, double share, std::vector<Resource>& resources) const {
    const double of_member = bytes / group_.of_node();
    resources.push_back(nic(of_member, share));
    for (const double port : group_.further_ports) resources.push_back({ResourceKind::nic, 0, of_member, port, share});
    for (const OuterLink& outer : group_.outer)
      resources.push_back({ResourceKind::dimension, outer.dimension, of_member, outer.ring, share});
  }
  void add_channels(double bytes, double most, std::vector<Resource>& resources) const {
    if (most > 0) resources.push_back({ResourceKind::channels, 0, bytes, most, 1});
  }

  /// Returns which part of a buffer goes to members that a port leads to, and which part passes a dimension: what goes
  /// to members behind it goes on from there through its port.
  double through_port(std::uint32_t port) const {
    if (group_.further_ports.empty()) return 1 - group_.of_node() / group_.ranks;
    return part_of(port, 0);
  }
  double through(const OuterLink& outer) const {
    if (group_.further_ports.empty()) return 1 - outer.below / group_.ranks;
    return part_of(outer.port, outer.below);
  }
  /// Returns the part for members that a port leads to and that are not among the nearest ones.
  double part_of(std::uint32_t port, double nearest) const {
    double members = 0;
    for (const OuterLink& outer : group_.outer)
      if (outer.port == port && outer.below >= nearest) members += outer.above - outer.below;
    return members / group_.ranks;
  }

  void try_direct() {
    const double n = group_.ranks, of_node = group_.of_node();
    std::vector<Resource> resources{links(bytes_ * ((is_in_one_node() ? n : of_node) - 1) / n, node_.all_to_all)};
    add_channels(bytes_ * (n - 1) / n, library_.channels.rate, resources);
    if (is_in_one_node()) return take("direct", std::move(resources));
    for (std::uint32_t port = 0; port <= group_.further_ports.size(); ++port)
      resources.push_back({ResourceKind::nic, 0, bytes_ * through_port(port), group_.port(port), nic_.all_to_all});
    for (const OuterLink& outer : group_.outer)
      resources.push_back(
          {ResourceKind::dimension, outer.dimension, bytes_ * through(outer), outer.direct, nic_.all_to_all});
    take("direct", std::move(resources), bytes_ * (1 - of_node / n));
  }

  /// One of the hops of a ring within a node leaves it, and the rings of a library leave it by different members.
  void try_ring() {
    std::vector<Resource> resources;
    const double of_node = group_.of_node();
    if (has_inner_links())
      resources.push_back(links(is_in_one_node() ? sent_ : sent_ * (of_node - 1) / of_node, node_.ring));
    if (!is_in_one_node()) add_cuts(sent_, nic_.ring, resources);
    if (has_inner_links()) add_channels(sent_, library_.channels.rate, resources);
    take("ring", std::move(resources), is_in_one_node() ? 0 : sent_ / of_node);
  }

  void try_nvls() {
    const double members = std::min<double>(group_.of_node(), full_nvls_members);
    std::vector<Resource> resources{links(bytes_, node_.nvls * std::pow(members / full_nvls_members, nvls_growth))};
    add_channels(bytes_, library_.nvls_channels.rate / 2, resources);
    take("NVLS", std::move(resources));
  }

  void try_tree() {
    std::vector<Resource> resources;
    const double crossing = bytes_ * (group_.nodes == 2 ? 1 : 2);
    add_cuts(crossing, reduces_in_switch_ ? nic_.tree : nic_.plain_tree, resources);
    if (has_inner_links()) resources.push_back(links(bytes_, reduces_in_switch_ ? node_.nvls_tree : node_.tree));
    take(reduces_in_switch_ ? "NVLSTree" : "tree", std::move(resources), crossing / group_.of_node());
  }

  void try_collnet() {
    std::vector<Resource> resources{nic(bytes_ / group_.of_node(), collnet_share * nic_.ring)};
    if (has_inner_links()) resources.push_back(links(bytes_, node_.nvls_tree > 0 ? node_.nvls_tree : node_.tree));
    take("CollNet", std::move(resources), bytes_ / group_.of_node());
  }

  const LibraryOptions& options_;
  const Library& library_;
  Fabric fabric_;
  NodeShares node_;
  NicShares nic_;
  Kind kind_;
  const LibraryGroup& group_;
  double bytes_;
  double sent_;          ///< bytes that a member sends in a ring
  double step_in_node_;  ///< seconds that a step within the node takes longer than where it was measured
  double step_between_;
  double latency_;
  bool reduces_in_switch_;
  LibraryTime best_;
};

/// Puts what is given in the place of what holds.
double overridden(double given, double holds) { return given > 0 ? given : holds; }

}  // namespace

double bus_factor(Kind kind, double ranks) {
  switch (kind) {
    case Kind::all_reduce:
      return 2 * (ranks - 1) / ranks;
    case Kind::broadcast:
    case Kind::reduce:
      return 1;
    case Kind::barrier:
      return 0;
    default:
      return (ranks - 1) / ranks;
  }
}

double share_of_ramp(Kind kind, std::uint32_t ranks) {
  if (!is_all_gather_or_reduce_scatter(kind)) return 1;
  // NCCL counts 8.4 us and 3.4 us for each step over NVLink (src/graph/tuning.cc, protocol Simple).
  constexpr double base = 8.4, of_step = 3.4;
  return (base + (ranks - 1) * of_step) / (base + 2 * (ranks - 1) * of_step);
}

NodeShares node_shares(const LibraryOptions& options) {
  const NodeShares& own = (*options.library)->shares;
  const double reached = options.rates == LinkRates::reached ? own.ring : 1;
  const NodeShares& given = options.shares;
  return {overridden(given.ring, own.ring / reached), overridden(given.nvls, own.nvls / reached),
          overridden(given.nvls_tree, own.nvls_tree / reached), overridden(given.tree, own.tree / reached),
          overridden(given.all_to_all, own.all_to_all / reached)};
}

NicShares nic_shares(const LibraryOptions& options) {
  const NicShares& own = options.fabric->shares;
  const double reached = options.rates == LinkRates::reached ? own.ring : 1;
  const NicShares& given = options.nic_shares;
  return {overridden(given.ring, own.ring / reached), overridden(given.tree, own.tree / reached),
          overridden(given.all_to_all, own.all_to_all / reached), overridden(given.tree, own.plain_tree / reached)};
}

std::string name(const Resource& resource) {
  switch (resource.kind) {
    case ResourceKind::latency:
      return "latency";
    case ResourceKind::links:
      return "links in the node";
    case ResourceKind::nic:
      return "NIC";
    case ResourceKind::dimension:
      return fmt::format("dimension {}", resource.dimension);
    case ResourceKind::channels:
      break;
  }
  return "GPU channels";
}

LibraryTime library_time(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes) {
  if (!options.relative) return absolute_time(options, kind, group, bytes);
  return RelativeTimes(options, kind, group, bytes).fastest();
}

std::optional<LibraryChoice> library_choice(const LibraryOptions& options, Kind kind, const LibraryGroup& group,
                                            double bytes) {
  const Library& library = **options.library;
  if (library.family == LibraryFamily::rccl) return rccl_choice(kind, group, bytes);
  return nccl_choice(library.generation, kind, group, bytes, options.collnet);
}

}  // namespace orrery::collective
