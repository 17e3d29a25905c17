#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/network/options.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::network {

/// The directed links of a network, whatever describes it. NPUs are the first nodes.
struct NetworkArcs {
  struct Arc {
    static constexpr std::uint32_t any_dimension = ~std::uint32_t{0};

    std::uint32_t from = 0, to = 0;
    std::uint64_t rate = 0;                   ///< bits per second
    std::uint32_t dimension = any_dimension;  ///< dimension whose messages alone take it
  };
  std::uint32_t num_npus = 0, num_idle = 0, num_nodes = 0;  ///< idle hosts follow the NPUs, then come switches
  bool hosts_forward = false;                               ///< paths lead through NPUs and idle hosts too
  std::vector<Arc> arcs = {};

  bool is_host(std::uint32_t node) const { return node < num_npus + num_idle; }
};

/// Returns the links of the graph or of the shapes, without those that failed at time 0. O(links).
NetworkArcs arcs_of(const topology::Topology& topology, const Options& options);

/// What the links of a network carry out of units of its NPUs, in a dimension that divides them. Bytes per second.
struct DimensionCut {
  double of_npu = 0;   ///< rate at which each NPU can send to all others of its group in the dimension
  double of_unit = 0;  ///< rate out of the units, of the narrowest: that of one NPU after the other in a ring

  friend bool operator==(const DimensionCut&, const DimensionCut&) = default;
};

/// Returns the cuts of each dimension from `first` on, by maximum flows out of units of consecutive NPUs. Those before
/// it, and of one NPU, have no limit. Returns nothing for a network that is too large. O(divisors of the sizes * flow).
std::vector<DimensionCut> cuts_of(const NetworkArcs& network, std::span<const topology::Dimension> dimensions,
                                  std::uint32_t first);

/// Links between NPUs and switches by tier. A switch is of tier t if t links lead to it from the nearest host.
struct TierFigures {
  struct Side {
    std::uint64_t links = 0;
    double rate = 0;  ///< bits per second in one direction, all of them together
  };
  std::uint32_t tier = 0;
  std::uint64_t devices = 0;
  Side down = {}, across = {}, up = {};  ///< to lower tiers, to the same tier, to higher tiers
  double from_below = 0;  ///< bits per second from lower tiers, to those of its devices from which links lead up
  /// Returns the bandwidth that comes from below over that which leads up; none if no such link is there.
  std::optional<double> oversubscription() const;
};

/// Returns the tiers, NPUs (tier 0) first. Devices that no host reaches are in none. O(links).
std::vector<TierFigures> tiers_of(const NetworkArcs& network);

/// What paths between NPUs are like.
struct PathDiversity {
  struct Range {
    double least = 0, median = 0, most = 0;
  };
  std::uint64_t sources = 0;      ///< NPUs from which hops were counted
  std::uint64_t pairs = 0;        ///< pairs of which paths were counted
  std::uint64_t unreachable = 0;  ///< pairs of NPUs without a path, of those from the sources
  std::uint32_t diameter = 0;     ///< most links of a shortest path
  double mean_hops = 0;           ///< links of the shortest path, the mean over pairs
  Range shortest;                 ///< number of shortest paths of a pair
  Range disjoint;                 ///< most paths of a pair, of any length, no two of which share a link
};

/// Counts from all NPUs and over all ordered pairs where these are few enough, else over a choice by the seed.
/// O(sources * links + pairs * disjoint paths * links).
PathDiversity paths_of(const NetworkArcs& network, std::uint32_t most_pairs, std::uint32_t seed);

/// The bandwidth from one half of the NPUs to the other, for the halves and the direction in which it is the least.
struct Bisection {
  double at_least = 0, at_most = 0;  ///< bits per second
  std::string halves;                ///< between which it is `at_most`
  double injection = 0;              ///< bandwidth of half of the NPUs: what their own links carry

  bool is_exact() const { return at_most <= at_least * (1 + 1e-9); }
};

/// NPUs in two halves.
struct Halves {
  std::string name;
  std::vector<bool> is_first;  ///< [NPUs]
};

/// Returns bounds. Above: the least of the maximum flows between these halves, in both directions where links carry
/// more one way than the other. Halves differ by one NPU at the most. Below: what a pattern carries in which all NPUs
/// send to all others, evenly over all shortest paths; 0 where that would take too long or some pairs have no path.
/// Of 16 NPUs and fewer all halves are looked at, so that the bounds meet.
/// Each half sends |half| * |other half| of its messages over the cut, and the cut carries them.
Bisection bisection_of(const NetworkArcs& network, const std::vector<Halves>& halves);

/// Returns the most bits per second that a network carries from some hosts to others together.
double maximum_flow(const NetworkArcs& network, const std::vector<bool>& is_source);
/// Returns for each pair how many paths lead from its first host to its second of which no two share a link: [pairs].
std::vector<std::uint32_t> disjoint_paths(const NetworkArcs& network,
                                          const std::vector<std::pair<std::uint32_t, std::uint32_t>>& pairs);

}  // namespace orrery::network
