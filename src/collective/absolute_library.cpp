// Times of libraries by the bandwidths of the machine that they were measured on, whatever the network is.
#include <algorithm>
#include <cmath>

#include "library_parts.hpp"
#include "nccl_tuning.hpp"

namespace orrery::collective {
namespace {

constexpr double nic_share = 0.96;             ///< share of the bandwidth of NICs in rings
constexpr double tree_share = 0.85;            ///< share of the bandwidth of NICs in trees of two nodes
constexpr double in_switch_tree_share = 0.95;  ///< share of `in_switch` over two nodes
constexpr double ring_tree_share = 0.8;        ///< share of `ring` in trees without a switch that reduces
constexpr double all_to_all_share = 0.95;      ///< share of `ring`
constexpr double all_to_all_nic_share = 0.7;   ///< share of the NICs' bandwidth; a run on 2 x 64 GB300 reached 0.24

/// Returns the bus bandwidth of rings within a node. In a mesh a group uses the links among its members only.
double absolute_ring(const Library& library, double of_node) {
  if (library.mesh == 0) return library.absolute.ring;
  return library.absolute.ring * std::clamp(of_node - 1, 1.0, library.mesh - 1.0) / (library.mesh - 1.0);
}

/// Returns the time of the bytes alone, by the fastest algorithm. Over two nodes with EFA a tree is faster than a ring,
/// as runs on AWS p4de show. With InfiniBand A100 reach what rings reach: 86 GB/s of 100 on two nodes with four NICs
/// each (NVIDIA/nccl-tests, issue 175), and steps of vTrain with tensor parallelism over two such nodes agree with it.
LibraryTime absolute_moving(const Library& library, const Fabric& fabric, Kind kind, const LibraryGroup& group,
                            double bytes) {
  const double ranks = group.ranks, of_node = ranks / group.nodes, nics = of_node * group.nic;
  const double sent = bus_factor(kind, ranks) * bytes, ring = absolute_ring(library, of_node);
  if (kind == Kind::all_to_all) {
    const double within = sent / (all_to_all_share * ring);
    if (group.nodes == 1) return {.algorithm = "direct", .seconds = within};
    return {.algorithm = "direct",
            .seconds = std::max(within, bytes * (1 - 1.0 / group.nodes) / (all_to_all_nic_share * group.nic))};
  }
  const double over_nodes = library.absolute.ring_over_nodes > 0 ? library.absolute.ring_over_nodes : ring;
  LibraryTime best{.algorithm = "ring",
                   .seconds = sent / (group.nodes == 1 ? ring : std::min(over_nodes, nic_share * nics))};
  if (kind != Kind::all_reduce || library.family == LibraryFamily::rccl) return best;
  const auto try_other = [&](std::string_view algorithm, double bandwidth) {
    if (bytes / bandwidth < best.seconds) best = {.algorithm = algorithm, .seconds = bytes / bandwidth};
  };
  const bool has_switch = library.absolute.in_switch > 0 && of_node >= library.fewest_in_switch;
  if (group.nodes == 1 && has_switch) try_other("NVLS", library.absolute.in_switch);
  if (group.nodes == 2 && (has_switch || fabric.is_efa || library.generation != NcclGeneration::ampere))
    try_other(has_switch ? "NVLSTree" : "tree",
              std::min(tree_share * nics, has_switch ? in_switch_tree_share * library.absolute.in_switch
                                                     : ring_tree_share * library.absolute.ring));
  return best;
}

}  // namespace

LibraryTime absolute_time(const LibraryOptions& options, Kind kind, const LibraryGroup& group, double bytes) {
  const Library& library = **options.library;
  LibraryTime time = absolute_moving(library, *options.fabric, kind, group, bytes);
  time.transfer = time.seconds;
  if (group.nodes == 1) {
    time.ramp = share_of_ramp(kind, group.ranks) * library.absolute.within_node.seconds(bytes);
    time.seconds += time.ramp;
    return time;
  }
  const Ramp& between = options.fabric->is_efa ? library.absolute.efa : library.absolute.infiniband;
  time.ramp = library.absolute.within_node.latency + std::log2(group.nodes) * between.seconds(bytes);
  time.seconds += time.ramp;
  // The ramps are those of all-reduces, for which trees take few steps. These kinds have rings only.
  const bool has_rings_only = kind == Kind::all_gather || kind == Kind::reduce_scatter;
  if (has_rings_only && library.family == LibraryFamily::nccl)
    time.seconds = std::max(time.seconds, ring_over_nodes_seconds(group, time.transfer));
  return time;
}

}  // namespace orrery::collective
