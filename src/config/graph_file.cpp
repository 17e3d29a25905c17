#include "orrery/config/graph_file.hpp"
#include "orrery/graphfile/infragraph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "graph_reader.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/graphfile/ns3_config.hpp"
#include "orrery/network/graph_delays.hpp"
#include "orrery/network/packet_router.hpp"

namespace orrery::config {
namespace {

using network::GivenGraph;
using topology::GraphDimension;
using topology::NetworkGraph;

constexpr std::uint64_t most_checked_pairs = std::uint64_t{1} << 28U;  // of nodes and hosts, as in the packet network

/// Finds sets that are joined step by step.
class Sets {
 public:
  explicit Sets(std::uint32_t size) : parent_(size) { std::iota(parent_.begin(), parent_.end(), 0U); }

  std::uint32_t find(std::uint32_t one) {
    while (parent_[one] != one) one = parent_[one] = parent_[parent_[one]];
    return one;
  }
  void join(std::uint32_t a, std::uint32_t b) { parent_[std::max(find(a), find(b))] = std::min(find(a), find(b)); }

 private:
  std::vector<std::uint32_t> parent_;
};

double bytes_per_ns(std::uint64_t bits_per_second) { return static_cast<double>(bits_per_second) / 8e9; }
double in_nanoseconds(Time time) { return static_cast<double>(time.ps()) / 1000; }

/// Returns a graph of which nobody says what its machines are: hosts are in one machine if they have links between
/// them, or share a switch that joins nothing but hosts.
NetworkGraph network_of(const GivenGraph& given) {
  const network::PacketGraph& graph = given.graph;
  Sets machines(graph.num_nodes());
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node)
    if (graph.node(node).is_host ||
        std::ranges::all_of(graph.ports(node), [&](const auto& port) { return graph.node(port.peer).is_host; }))
      for (const auto& port : graph.ports(node))
        if (graph.node(port.peer).is_host) machines.join(node, port.peer);
  NetworkGraph network;
  network.num_npus = graph.num_hosts();
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node)
    network.nodes.push_back(
        {fmt::format("{}.{}", graph.node(node).is_host ? "host" : "switch", node), machines.find(node)});
  for (const auto& link : graph.links()) {
    topology::ComponentGraph::LinkKind& kind = network.kinds.emplace_back();
    kind.name = "link";
    kind.bytes_per_ns = bytes_per_ns(link.rate);
    kind.latency_ns = in_nanoseconds(link.delay);
    if (link.back && link.back->rate != link.rate) kind.bytes_per_ns_back = bytes_per_ns(link.back->rate);
    if (link.back && link.back->delay != link.delay) kind.latency_ns_back = in_nanoseconds(link.back->delay);
    network.links.push_back({link.a, link.b, static_cast<std::uint32_t>(network.links.size())});
  }
  return network;
}

bool lie_on(const GivenGraph& given, const std::vector<GraphDimension>& dimensions) {
  std::vector<network::GraphDimension> lying;
  for (const GraphDimension& dimension : dimensions)
    lying.push_back({dimension.size, *network::partners_on_graph(dimension.shape)});
  try {
    (void)delays_of_dimensions(given, lying);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Returns the first of these dimensions that lie on the graph: those that are proposed, those that its form shows, and
/// one Switch of all NPUs.
std::vector<GraphDimension> fitting(const GivenGraph& given, const NetworkGraph& network,
                                    const std::vector<GraphDimension>& proposed) {
  if (!proposed.empty() && lie_on(given, proposed)) return proposed;
  if (const auto found = find_dimensions(network); !found.empty() && lie_on(given, found)) return found;
  const std::vector<GraphDimension> of_all = {{"Switch", network.num_npus}};
  return lie_on(given, of_all) ? of_all : std::vector<GraphDimension>();
}

}  // namespace

std::optional<GraphFile> read_graph_file(const std::filesystem::path& file) {
  const std::string text = read_text(file, {});
  GraphFile read;
  if (graphfile::is_ns3_graph(text)) {
    read.given = graphfile::read_ns3_graph(text, file, read.notes);
    read.network = network_of(read.given);
    read.dimensions = fitting(read.given, read.network, {});
    return read;
  }
  refuse_other_text(file, text);
  Faults faults;
  const Value root =
      parse_yaml(text, std::make_shared<const Origin>(Origin{file.string(), file.parent_path()}), faults);
  const Value *value = &root, *at = &root;
  std::string path = "graph";
  if (root.find("system") != nullptr) {
    for (const char* const key : {"system", "network", "graph"})
      if (at != nullptr) at = at->find(key);
    if (at == nullptr)
      throw Error(ErrorCode::bad_input, {.file = file.string()}, "the configuration has no system.network.graph",
                  "a configuration whose dimensions lie on a graph");
    value = at;
    path = "system.network.graph";
  } else if (!is_own_graph(root)) {
    refuse_other_file(file, root);
    return {};
  }
  WholeGraph whole = read_graph(*value, path, GraphHosts::of_npus, faults);
  faults.raise();
  read.given = std::move(whole.given);
  read.notes = std::move(whole.notes);
  const bool is_as_made = whole.generated && read.given.num_placed == 0;
  read.network = is_as_made ? std::move(whole.generated->graph) : network_of(read.given);
  const auto proposed = is_as_made ? std::move(whole.generated->dimensions) : std::vector<GraphDimension>();
  read.dimensions = fitting(read.given, read.network, proposed);
  return read;
}

std::optional<GraphFile> read_lone_graph(const std::filesystem::path& file, const topology::LinkDefaults& defaults) {
  const std::string text = read_text(file, {});
  if (!graphfile::is_ns3_graph(text)) {
    Faults faults;  // whoever reads the file again says what is wrong with it
    const Value root =
        parse_yaml(text, std::make_shared<const Origin>(Origin{file.string(), file.parent_path()}), faults);
    const Value* const workload = root.find("workload");
    const bool has_flows = workload != nullptr && workload->find("flows") != nullptr;
    if (!has_flows && (workload != nullptr || root.find("system") != nullptr)) return {};
  }
  if (auto graph = read_graph_file(file)) return graph;
  NetworkGraph network = topology::network_of(graphfile::read_infragraph(file));
  topology::complete_links(network, defaults, {.file = file.string()}, "physical.bandwidth of each link",
                           "Add them to the description.");
  return graph_file_of(std::move(network));
}

GraphFile graph_file_of(NetworkGraph network) {
  GraphFile made;
  made.given = graph_of(network);
  made.dimensions = find_dimensions(network);
  made.network = std::move(network);
  return made;
}

std::optional<CutOff> find_cut_off(const GivenGraph& given) {
  if (std::uint64_t{given.graph.num_nodes()} * given.graph.num_hosts() > most_checked_pairs) return {};
  std::vector<network::LinkFailure> all = given.failures;
  for (auto& failure : all) failure.time = Time::zero();
  const network::PacketRouter router(given.graph, all, given.routes);
  CutOff cut;
  const std::uint32_t num_npus = given.num_placed > 0 ? given.num_placed : given.graph.num_hosts();
  std::optional<std::uint64_t> fewest;
  for (std::uint32_t from = 0; from < num_npus; ++from) {
    std::vector<std::uint32_t> lost;
    for (std::uint32_t to = 0; to < num_npus; ++to)
      if (to != from && router.ports(from, to, Time::zero()).empty()) lost.push_back(to);
    cut.pairs += lost.size();
    if (lost.empty() || (fewest && lost.size() >= *fewest)) continue;
    fewest = lost.size();
    cut.from = from;
    cut.npus = std::move(lost);
  }
  if (cut.pairs == 0) return {};
  return cut;
}

}  // namespace orrery::config
