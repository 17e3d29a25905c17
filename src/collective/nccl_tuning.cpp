#include "nccl_tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace orrery::collective {
namespace {

// Times are microseconds and bandwidths GB/s, as in NCCL's tables.

enum Protocol : std::uint8_t { ll, ll128, simple };
constexpr std::array<std::string_view, 3> protocol_names = {"LL", "LL128", "Simple"};
using OfProtocol = std::array<double, 3>;

/// Figures of an algorithm that passes data from rank to rank.
struct Steps {
  OfProtocol base, nvlink, net;
};
constexpr Steps ring_steps{{6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {2.7, 4.0, 14.0}};
constexpr Steps tree_steps{{6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {5.0, 8.5, 14.0}};
/// The share of a ring's bandwidth that each protocol reaches: half of what LL sends are flags.
constexpr OfProtocol ring_share = {0.5, 0.92, 1};
constexpr double pat_base = 8, pat_net = 14, pat_rank = 2.8, pat_share = 0.75;
constexpr double nvls_nvlink = 25, nvls_tree_net = 20.9;
constexpr double collnet_direct_nvlink = 3.7, collnet_direct_net = 31, collnet_chain_nvlink = 2.8,
                 collnet_chain_net = 30;
constexpr double overhead_of_step = 1;  // of the host, between nodes; three times as much with Simple

/// Figures of a generation of GPUs; by 1, 2 and more nodes where there are three.
struct Generation {
  double nvlink;                                      ///< GB/s of a GPU
  double ll_in_node;                                  ///< most that LL reaches
  double ll128_ring;                                  ///< GB/s of a channel
  std::array<double, 3> ll128_tree, tree, nvls_tree;  ///< GB/s of a channel
  double nvls_share;                                  ///< share of the links, in the switch; 0: it does not reduce
  std::uint32_t channels;                             ///< channels in a node
};
constexpr Generation ampere{240, 87.7, 20, {20, 20, 20}, {24, 23.6, 17.8}, {24, 23.6, 17.8}, 0, 24};
constexpr Generation hopper{370.8, 141, 36.7, {36.7, 36.7, 29}, {38.7, 41.4, 36}, {0, 57.7, 45.5}, 0.85, 24};
constexpr Generation blackwell{721.8, 282, 40, {55.6, 31.67, 20}, {70, 42.8, 24}, {0, 96, 80}, 0.74, 32};
constexpr std::array<double, 3> ll_between_nodes = {0, 39, 20.4};
constexpr std::uint32_t nvls_channels = 16, most_channels = 32;

/// What trees reach of their bandwidth, at 64 B, 128 B, ...
constexpr std::array<std::array<double, 24>, 3> tree_correction = {
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

const Generation& figures_of(NcclGeneration generation) {
  switch (generation) {
    case NcclGeneration::ampere:
      return ampere;
    case NcclGeneration::hopper:
      return hopper;
    case NcclGeneration::blackwell:
      break;
  }
  return blackwell;
}

/// Finds the fastest way to carry out a collective.
class Chooser {
 public:
  Chooser(const Generation& generation, Kind kind, const LibraryGroup& group, double bytes)
      : generation_(generation),
        kind_(kind),
        bytes_(bytes),
        ranks_(group.ranks),
        nodes_(group.nodes),
        of_node_(group.ranks / group.nodes),
        nics_(of_node_ * group.nic / 1e9),
        bandwidth_(group.nodes == 1 ? generation.nvlink : std::min(generation.nvlink, nics_)),
        number_(group.nodes == 1   ? 0
                : group.nodes == 2 ? 1
                                   : 2),
        channels_(group.nodes == 1 ? generation.channels
                                   : std::clamp(2 * group.ranks / group.nodes, std::uint32_t{2}, most_channels)) {}

  std::optional<LibraryChoice> choose(bool has_collnet) {
    const bool is_reduced = kind_ == Kind::all_reduce || kind_ == Kind::barrier;
    const bool is_shared = kind_ == Kind::all_gather || kind_ == Kind::reduce_scatter;
    if (!is_reduced && !is_shared && kind_ != Kind::broadcast && kind_ != Kind::reduce) return {};
    for (const Protocol protocol : {ll, ll128, simple}) {
      try_ring(protocol);
      if (is_reduced) try_tree(protocol);
    }
    const bool has_switch = generation_.nvls_share > 0 && of_node_ > 2;
    if (has_switch && nodes_ == 1 && (is_reduced || is_shared)) try_switch();
    if (has_switch && nodes_ > 1 && is_reduced) try_switch_trees();
    if (is_shared && nodes_ > 1 && of_node_ == 1) try_pat();
    if (has_collnet && nodes_ > 1 && is_reduced) try_collnet();
    return best_;
  }

 private:
  double num_steps() const { return steps_of(ranks_); }
  /// Returns the steps of a ring among so many.
  double steps_of(double members) const {
    if (kind_ == Kind::all_reduce || kind_ == Kind::barrier) return 2 * (members - 1);
    return kind_ == Kind::all_gather || kind_ == Kind::reduce_scatter ? members - 1 : members;
  }

  void take(std::string_view algorithm, Protocol protocol, std::uint32_t channels, double latency, double bandwidth) {
    if (bandwidth <= 0) return;
    const double seconds = 1e-6 * latency + bytes_ / (1e9 * bandwidth);
    if (!best_ || seconds < best_->seconds) best_ = {algorithm, protocol_names[protocol], channels, seconds};
  }

  /// Returns the most that LL reaches.
  double most_of_ll() const { return nodes_ == 1 ? generation_.ll_in_node : ll_between_nodes[number_]; }

  void try_ring(Protocol protocol) {
    double bus = bandwidth_;
    if (protocol == ll) bus = std::min(most_of_ll(), bus * ring_share[ll]);
    if (protocol == ll128) bus = std::min(bus * ring_share[ll128], channels_ * generation_.ll128_ring);
    const double between = nodes_ == 1 ? 0 : steps_of(nodes_);
    const double overhead = nodes_ == 1 ? 0 : overhead_of_step * (protocol == simple ? 3 : 1);
    double latency = ring_steps.base[protocol] + between * ring_steps.net[protocol] +
                     (num_steps() - between) * std::max(ring_steps.nvlink[protocol], overhead);
    const bool is_on_plateau =
        protocol == simple && nodes_ > 1 && kind_ == Kind::all_reduce && bytes_ / (channels_ * ranks_) >= 64;
    if (is_on_plateau) latency *= 1.4;
    take("ring", protocol, channels_, latency, bus * ranks_ / num_steps());
  }

  void try_tree(Protocol protocol) {
    double bus = std::min(bandwidth_ * 0.92, channels_ * generation_.tree[number_]);
    if (protocol == ll) bus = std::min(bus / 3.8, most_of_ll());
    if (protocol == ll128)
      bus = std::min(bus * (nodes_ == 1 ? 7.0 / 9 : 120.0 / 128), channels_ * generation_.ll128_tree[number_]);
    const double size = std::log2(std::max(bytes_, 64.0) / 64);
    const auto at = static_cast<std::size_t>(size);
    if (at < tree_correction[protocol].size()) bus *= tree_correction[protocol][at];
    const double latency = tree_steps.base[protocol] + 2 * ((of_node_ - 1) * tree_steps.nvlink[protocol] +
                                                            std::log2(nodes_) * tree_steps.net[protocol]);
    take("tree", protocol, channels_, latency, bus / 2);
  }

  /// Returns what the switch of a node reaches.
  double in_switch() const {
    const double share = generation_.nvls_share * (nvls_channels - 1) / nvls_channels;
    return generation_.nvlink * share * (kind_ == Kind::all_reduce ? 2 : (of_node_ - 1) / of_node_);
  }

  void try_switch() { take("NVLS", simple, nvls_channels, nvls_nvlink, in_switch() * ranks_ / num_steps()); }

  void try_switch_trees() {
    const double bus =
        std::min({in_switch(), nics_ * (nodes_ == 2 ? 2 : 1), nvls_channels * generation_.nvls_tree[number_]});
    take("NVLSTree", simple, nvls_channels, nvls_nvlink + 2 * std::log2(nodes_) * nvls_tree_net, bus / 2);
  }

  void try_pat() {
    const double latency = pat_base + std::log2(nodes_) * pat_net / 3.5 + pat_rank * ranks_;
    take("PAT", simple, channels_, latency, bandwidth_ * pat_share * ranks_ / num_steps());
  }

  /// The bandwidth is that of NCCL 2.10 (commit 01afd20a): 0.9 of the links, of which each byte passes two.
  void try_collnet() {
    const double bandwidth = 0.9 * bandwidth_ / 2, hops = 2 * (of_node_ - 1);
    take("CollNetDirect", simple, channels_, hops * collnet_direct_nvlink + collnet_direct_net, bandwidth);
    take("CollNetChain", simple, channels_, hops * collnet_chain_nvlink + collnet_chain_net, bandwidth);
  }

  const Generation& generation_;
  Kind kind_;
  double bytes_, ranks_, nodes_, of_node_;
  double nics_;       ///< NICs per node
  double bandwidth_;  ///< GB/s of all channels
  std::size_t number_;
  std::uint32_t channels_;
  std::optional<LibraryChoice> best_;
};

}  // namespace

double ring_over_nodes_seconds(const LibraryGroup& group, double moving) {
  const double between = group.nodes - 1, within = group.ranks - group.nodes;
  double least = std::numeric_limits<double>::infinity();
  for (const Protocol protocol : {ll, ll128, simple}) {
    const double step = std::max(ring_steps.nvlink[protocol], overhead_of_step * (protocol == simple ? 3 : 1));
    const double latency = ring_steps.base[protocol] + between * ring_steps.net[protocol] + within * step;
    least = std::min(least, 1e-6 * latency + moving / ring_share[protocol]);
  }
  return least;
}

std::optional<LibraryChoice> nccl_choice(NcclGeneration generation, Kind kind, const LibraryGroup& group, double bytes,
                                         bool has_collnet) {
  return Chooser(figures_of(generation), kind, group, bytes).choose(has_collnet);
}

}  // namespace orrery::collective
