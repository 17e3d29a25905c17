#include "rccl_tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace orrery::collective {
namespace {

/// Figures of an algorithm: LL, then Simple. LL128 is left out, because RCCL takes it on MI300X only if it is forced.
struct Row {
  std::array<double, 2> base, link, network;         ///< latencies, us
  std::array<double, 2> few_nodes, more;             ///< share of the bandwidth, with up to two nodes and with more
  std::array<std::array<double, 27>, 2> correction;  ///< factors of the bandwidth at 64 B, 128 B, ...
};
constexpr Row tree_row{
    .base = {12, 17},
    .link = {0.9, 2.3},
    .network = {10.5, 25},
    .few_nodes = {0.06, 0.11},
    .more = {0.06, 0.59},
    .correction = {
        {{.1, .1, .1, .1, .1, .1, 1, 1, 1, 1, 1, .6, 1, .9, 1, 1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1},
         {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .7, 1, 1, 1, 1, 1, .7, .7, .5, .6, .6, .6}}}};
constexpr Row ring_row{
    .base = {12, 17},
    .link = {0.8, 2.1},
    .network = {9.5, 320},
    .few_nodes = {0.08, 1},
    .more = {0.08, 1},
    .correction = {
        {{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1, .2, 1, .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1},
         {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1, .8, 1, 1, 1}}}};
constexpr double rccl_overhead_of_step = 2;  // us, of the host, between nodes; three times as much with Simple
// GB/s of a link; each GPU has one to each other one. That rings use all of them is an assumption.
constexpr double link_rate = 48;

double steps_of(Kind kind, double members) {
  if (kind == Kind::all_reduce || kind == Kind::barrier) return 2 * (members - 1);
  return kind == Kind::all_gather || kind == Kind::reduce_scatter ? members - 1 : members;
}

/// Returns the seconds that the tables give.
double estimate(const Row& row, bool is_tree, std::size_t protocol, Kind kind, const LibraryGroup& group,
                double bytes) {
  const double ranks = group.ranks, nodes = group.nodes, of_node = ranks / nodes, steps = steps_of(kind, ranks);
  const double bus =
      group.nodes == 1 ? link_rate * std::max(of_node - 1, 1.0) : of_node * std::min(group.nic / 1e9, link_rate);
  double bandwidth = bus * (group.nodes <= 2 ? row.few_nodes : row.more)[protocol] * (is_tree ? 0.5 : ranks / steps);
  if (bytes >= 64 && (is_tree || group.nodes > 1))
    bandwidth *= row.correction[protocol][std::min(static_cast<std::size_t>(std::log2(bytes / 64)), std::size_t{26})];
  double latency = row.base[protocol];
  if (is_tree) {
    latency += 2 * ((of_node - 1) * row.link[protocol] + std::floor(std::log2(nodes)) * row.network[protocol]);
  } else if (kind == Kind::broadcast || kind == Kind::reduce) {
    latency += group.nodes == 1 ? row.link[protocol] : row.network[protocol];
  } else {
    const double between = group.nodes == 1 ? 0 : steps_of(kind, nodes);
    const double overhead = group.nodes == 1 ? 0 : rccl_overhead_of_step * (protocol == 1 ? 3 : 1);
    latency += (steps - between) * std::max(row.link[protocol], overhead) + between * row.network[protocol];
  }
  return 1e-6 * latency + bytes / (1e9 * bandwidth);
}

/// Returns the bytes of a rank up to which collectives over nodes take LL, and Simple above.
double most_of_ll(Kind kind) {
  if (kind == Kind::all_gather) return 98304;
  if (kind == Kind::reduce_scatter) return 655360;
  return kind == Kind::all_reduce || kind == Kind::barrier ? 1048576 : 0;
}

}  // namespace

std::optional<LibraryChoice> rccl_choice(Kind kind, const LibraryGroup& group, double bytes) {
  const bool is_reduced = kind == Kind::all_reduce || kind == Kind::barrier;
  const bool is_shared = kind == Kind::all_gather || kind == Kind::reduce_scatter;
  if (!is_reduced && !is_shared && kind != Kind::broadcast && kind != Kind::reduce) return {};
  constexpr std::array<std::string_view, 2> protocols = {"LL", "Simple"};
  std::optional<LibraryChoice> best;
  for (const bool is_tree : {true, false})
    for (const std::size_t protocol : {0U, 1U}) {
      if (is_tree && (!is_reduced || (protocol == 1 && group.nodes == 1))) continue;
      const double seconds = estimate(is_tree ? tree_row : ring_row, is_tree, protocol, kind, group, bytes);
      if (!best || seconds < best->seconds) best = {is_tree ? "tree" : "ring", protocols[protocol], 0, seconds};
    }
  if (group.nodes > 1) {
    const double of_rank = is_shared ? bytes / group.ranks : bytes;
    best->protocol = protocols[of_rank <= most_of_ll(kind) ? 0 : 1];
  }
  return best;
}

}  // namespace orrery::collective
