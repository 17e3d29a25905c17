#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/graph_file.hpp"
#include "orrery/config/read.hpp"
#include "orrery/network/network_figures.hpp"
#include "orrery/partition/communication_graph.hpp"
#include "orrery/partition/strategy.hpp"
#include "orrery/show/commands.hpp"
#include "orrery/topology/network_graph.hpp"
#include "orrery/topology/topology.hpp"
#include "print_figures.hpp"

namespace orrery::show {
namespace {

using network::Halves;
using network::NetworkArcs;
using nlohmann::ordered_json;

constexpr double bits_of_byte_per_ns = 8e9;

/// Programs get bytes per ns, people the units that they write.
ordered_json rate_json(double bits_per_second, bool for_programs) {
  const double bytes_per_ns = bits_per_second / bits_of_byte_per_ns;
  if (for_programs || bytes_per_ns <= 0) return bytes_per_ns;
  return fmt::format("{}B/s", with_prefix(bits_per_second / 8));
}

/// Returns the halves of NPUs in the order of their numbers, and for each dimension those that its middle separates.
std::vector<Halves> halves_of_dimensions(const topology::Topology& topology) {
  const std::uint32_t n = topology.num_npus();
  std::vector<Halves> all;
  Halves& in_order = all.emplace_back(Halves{"the first and the second half of the NPUs", {}});
  for (std::uint32_t npu = 0; npu < n; ++npu) in_order.is_first.push_back(npu < n / 2);
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    const std::uint32_t size = topology.dimension(d).size;
    if (size % 2 != 0) continue;
    Halves& halves = all.emplace_back(Halves{fmt::format("the two halves of dimension {}", d), {}});
    for (std::uint32_t npu = 0; npu < n; ++npu)
      halves.is_first.push_back(topology.coordinate(NpuId(npu), d) < size / 2);
  }
  return all;
}

/// Returns the halves that METIS finds, with the NPUs that are too many in one of them moved to the other.
Halves halves_of_metis(const NetworkArcs& network, const topology::Topology& topology) {
  constexpr std::uint64_t load_of_npu = 1000;  // switches have almost none
  partition::CommunicationGraph graph;
  for (std::uint32_t node = 0; node < network.num_nodes; ++node)
    graph.loads.push_back(node < network.num_npus ? load_of_npu : 1);
  for (const NetworkArcs::Arc& arc : network.arcs)
    graph.flows.push_back({.from = arc.from, .to = arc.to, .bytes = arc.rate / 1'000'000 + 1, .messages = 0});
  const partition::PartitionOptions metis("metis", {});
  const partition::Partition two = metis.make({.topology = topology, .num_ranks = 2, .graph = &graph});
  Halves halves{"two halves that METIS found", {}};
  std::uint32_t first = 0;
  for (std::uint32_t npu = 0; npu < network.num_npus; ++npu) {
    halves.is_first.push_back(two.ranks()[npu] == Rank(0));
    first += halves.is_first.back() ? 1 : 0;
  }
  for (std::uint32_t npu = 0; npu < network.num_npus; ++npu) {
    if (halves.is_first[npu] ? first <= (network.num_npus + 1) / 2 : first >= network.num_npus / 2) continue;
    first = halves.is_first[npu] ? first - 1 : first + 1;
    halves.is_first[npu] = !halves.is_first[npu];
  }
  return halves;
}

ordered_json tier_json(const network::TierFigures& tier, bool for_programs) {
  ordered_json json = {{"devices", tier.tier == 0 ? "hosts" : "switches"}, {"number", tier.devices}};
  const std::pair<const char*, const network::TierFigures::Side&> sides[] = {
      {"down", tier.down}, {"across", tier.across}, {"up", tier.up}};
  for (const auto& [name, side] : sides) {
    if (side.links == 0) continue;
    json[fmt::format("links_{}", name)] = side.links;
    json[fmt::format("{}_{}", for_programs ? "bytes_per_ns" : "bandwidth", name)] = rate_json(side.rate, for_programs);
  }
  if (const auto oversubscription = tier.oversubscription()) json["oversubscription"] = *oversubscription;
  return json;
}

ordered_json bisection_json(const network::Bisection& bisection, bool for_programs) {
  ordered_json json;
  if (bisection.is_exact()) {
    json[for_programs ? "bytes_per_ns" : "bandwidth"] = rate_json(bisection.at_most, for_programs);
  } else {
    if (bisection.at_least > 0)
      json[for_programs ? "bytes_per_ns_at_least" : "bandwidth_at_least"] = rate_json(bisection.at_least, for_programs);
    json[for_programs ? "bytes_per_ns_at_most" : "bandwidth_at_most"] = rate_json(bisection.at_most, for_programs);
  }
  json["exact"] = bisection.is_exact();
  json["between"] = bisection.halves;
  if (bisection.injection > 0) json["share_of_injection_at_most"] = bisection.at_most / bisection.injection;
  return json;
}

ordered_json range_json(const network::PathDiversity::Range& range) {
  return {{"min", range.least}, {"median", range.median}, {"max", range.most}};
}

/// A network, and the dimensions by which its NPUs are numbered.
struct ShownNetwork {
  topology::Topology topology;
  NetworkArcs network;
};

ShownNetwork network_of(config::GraphFile graph) {
  for (const std::string& note : graph.notes) spdlog::warn("{}", note);
  if (graph.dimensions.empty()) graph.dimensions = {{"Switch", graph.given.graph.num_hosts()}};
  std::vector<topology::Dimension> dimensions;
  for (const auto& [shape, size] : graph.dimensions)
    dimensions.push_back({topology::Shape("Switch"), size, Bandwidth::from_bytes_per_ns(1)});
  topology::Topology topology(std::move(dimensions));
  network::Options options;
  options.graph = std::make_shared<const network::GivenGraph>(std::move(graph.given));
  NetworkArcs network = network::arcs_of(topology, options);
  return {std::move(topology), std::move(network)};
}

/// Reads a configuration, or a file that is a graph alone.
ShownNetwork read_network(const config::Inputs& inputs) {
  const topology::LinkDefaults any_latency{.all = {.bytes_per_ns = {}, .latency_ns = 1}, .of_link = {}};  // not shown
  if (!inputs.astra_sim && inputs.overrides.empty() && inputs.flags.empty())
    if (auto graph = config::read_lone_graph(inputs.file, any_latency)) return network_of(std::move(*graph));
  const auto configuration = config::read(inputs);
  auto topology = configuration.topology();
  NetworkArcs network = network::arcs_of(topology, configuration.execution.network);
  return {std::move(topology), std::move(network)};
}

}  // namespace

void show_network(const ShowNetworkCommand& command) {
  const auto [topology, network] = read_network(command.inputs);
  const auto tiers = network::tiers_of(network);
  ordered_json figures;
  figures["npus"] = network.num_npus;
  if (network.num_idle > 0) figures["idle_hosts"] = network.num_idle;
  figures["switches"] = network.num_nodes - network.num_npus - network.num_idle;
  figures["links"] = network.arcs.size();
  for (const auto& tier : tiers) figures["tiers"].push_back(tier_json(tier, command.json));
  if (network.num_npus > 1) {
    auto halves = halves_of_dimensions(topology);
    halves.push_back(halves_of_metis(network, topology));
    figures["bisection"] = bisection_json(network::bisection_of(network, halves), command.json);
    const auto paths = network::paths_of(network, command.pairs, command.seed);
    figures["hops"] = {{"max", paths.diameter}, {"mean", paths.mean_hops}, {"from_npus", paths.sources}};
    if (paths.unreachable > 0) figures["hops"]["pairs_without_path"] = paths.unreachable;
    figures["paths"] = {
        {"pairs", paths.pairs}, {"shortest", range_json(paths.shortest)}, {"disjoint", range_json(paths.disjoint)}};
  }
  print_figures(figures, command.json);
}

}  // namespace orrery::show
