// Finds dimensions in a graph of NPUs and switches.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "orrery/topology/network_graph.hpp"

namespace orrery::topology {
namespace {

using NodeList = std::vector<std::uint32_t>;
using NodePairs = std::set<std::pair<std::uint32_t, std::uint32_t>>;

/// The NPUs of one host, numbered from 0, and what joins them.
struct HostGraph {
  std::uint32_t num_npus = 0;
  NodePairs pairs;                 ///< pairs of NPUs with a link, the lower number first
  std::vector<NodeList> switches;  ///< the NPUs of each switch in the host, ascending
};

enum class Form : std::uint8_t { ring, all_pairs, by_switch };
constexpr std::string_view form_names[] = {"Ring", "FullyConnected", "Switch"};

/// Returns the pairs of a line of NPUs that a form joins, or none if the line does not have it.
bool line_has(const HostGraph& host, const NodeList& line, Form form, NodePairs& joined) {
  NodePairs own;
  for (std::size_t i = 0; i < line.size(); ++i)
    for (std::size_t k = i + 1; k < line.size(); ++k)
      if (host.pairs.contains({line[i], line[k]})) own.insert({line[i], line[k]});
  joined.insert(own.begin(), own.end());
  const std::size_t n = line.size();
  if (form == Form::all_pairs) return own.size() == n * (n - 1) / 2;
  if (form == Form::by_switch)
    return own.empty() &&
           std::ranges::any_of(host.switches, [&](const NodeList& of) { return std::ranges::includes(of, line); });
  if (n == 2) return own.size() == 1;
  if (own.size() != n) return false;
  std::map<std::uint32_t, NodeList> next;
  for (const auto& [a, b] : own) {
    next[a].push_back(b);
    next[b].push_back(a);
  }
  if (next.size() != n || std::ranges::any_of(next, [](const auto& at) { return at.second.size() != 2; })) return false;
  std::uint32_t before = line[0], at = next[before][0];
  std::size_t steps = 1;
  while (at != line[0]) {
    const NodeList& ways = next[at];
    before = std::exchange(at, ways[0] == before ? ways[1] : ways[0]);
    ++steps;
  }
  return steps == n;
}

/// Says whether each line of a dimension has its form. `stride`: between neighbours.
bool dimension_has(const HostGraph& host, std::uint32_t size, std::uint32_t stride, Form form, NodePairs& joined) {
  for (std::uint32_t first = 0; first < host.num_npus; ++first) {
    if (first / stride % size != 0) continue;
    NodeList line;
    for (std::uint32_t i = 0; i < size; ++i) line.push_back(first + i * stride);
    if (!line_has(host, line, form, joined)) return false;
  }
  return true;
}

/// Adds dimensions until their sizes make up the host, each with the first form that its lines have.
bool find_product(const HostGraph& host, std::uint32_t stride, std::uint32_t left, const NodePairs& joined,
                  std::vector<GraphDimension>& dimensions) {
  const std::uint32_t rest = host.num_npus / stride;
  if (left == 0) return rest == 1 && joined.size() == host.pairs.size();
  for (std::uint32_t size = rest; size >= 2; --size) {
    if (rest % size != 0 || (left == 1 && size != rest) || (left > 1 && size == rest)) continue;
    for (const Form form : {Form::ring, Form::all_pairs, Form::by_switch}) {
      NodePairs all = joined;
      if (!dimension_has(host, size, stride, form, all)) continue;
      dimensions.push_back({form_names[static_cast<std::size_t>(form)], size});
      if (find_product(host, stride * size, left - 1, all, dimensions)) return true;
      dimensions.pop_back();
    }
  }
  return false;
}

std::vector<GraphDimension> dimensions_of(const HostGraph& host) {
  std::vector<GraphDimension> dimensions;
  for (std::uint32_t number = 1; number <= 3; ++number)
    if (find_product(host, 1, number, {}, dimensions)) return dimensions;
  return {};
}

/// The hosts of a graph, in the order of their NPUs, and the switches next to each of them in the fabric.
class Hosts {
 public:
  explicit Hosts(const NetworkGraph& graph) {
    std::map<std::uint32_t, std::uint32_t> number_of;
    NodeList host_of;
    for (std::uint32_t n = 0; n < graph.num_npus; ++n) {
      const auto [known, is_new] = number_of.emplace(graph.nodes[n].machine, static_cast<std::uint32_t>(hosts.size()));
      if (is_new) {
        hosts.emplace_back();
        first_.push_back(n);
        beside.emplace_back();
      }
      are_in_order &= known->second + 1 == hosts.size();
      host_of.push_back(known->second);
      ++hosts[known->second].num_npus;
    }
    std::map<std::uint32_t, std::set<std::uint32_t>> of_switch;  // in a host: its NPUs
    for (const NetworkGraph::Link& link : graph.links) {
      const auto [low, high] = std::minmax(link.a, link.b);
      if (low >= graph.num_npus) {
        note_nic(graph, low, high, number_of);
        continue;
      }
      const std::uint32_t host = host_of[low], own = low - first_[host];
      if (high < graph.num_npus) {
        are_in_order &= host_of[high] == host;  // hosts that are joined without a switch
        hosts[host].pairs.insert({own, high - first_[host]});
      } else if (graph.nodes[high].machine == graph.nodes[low].machine) {
        of_switch[high].insert(own);
      } else {
        beside[host].insert(high);
      }
    }
    for (const auto& [node, npus] : of_switch)
      hosts[number_of.at(graph.nodes[node].machine)].switches.emplace_back(npus.begin(), npus.end());
  }

  bool are_in_order = true;
  std::vector<HostGraph> hosts;
  std::vector<std::set<std::uint32_t>> beside;

 private:
  /// Notes that a device of a host, which is no NPU, has a link to a switch outside.
  void note_nic(const NetworkGraph& graph, std::uint32_t a, std::uint32_t b,
                const std::map<std::uint32_t, std::uint32_t>& number_of) {
    if (graph.nodes[a].machine == graph.nodes[b].machine) return;
    for (const auto& [own, other] : {std::pair(a, b), std::pair(b, a)})
      if (const auto host = number_of.find(graph.nodes[own].machine); host != number_of.end())
        beside[host->second].insert(other);
  }

  NodeList first_;  // NPU of each host
};

}  // namespace

std::vector<GraphDimension> find_dimensions(const NetworkGraph& graph) {
  const Hosts found(graph);
  if (!found.are_in_order) return {};
  std::vector<GraphDimension> dimensions;
  for (std::size_t h = 0; h < found.hosts.size(); ++h) {
    const HostGraph& host = found.hosts[h];
    const std::vector<GraphDimension> own = host.num_npus == 1 ? std::vector<GraphDimension>() : dimensions_of(host);
    if (own.empty() && host.num_npus > 1) return {};
    if (h > 0 && own != dimensions) return {};
    dimensions = own;
  }
  const std::size_t num_hosts = found.hosts.size();
  if (num_hosts == 1) return dimensions;
  std::size_t rack = 1;  // hosts that share their switches, from the first one on
  while (rack < num_hosts && found.beside[rack] == found.beside[0]) ++rack;
  for (std::size_t h = 0; h < num_hosts; ++h)
    if (found.beside[h].empty() || num_hosts % rack != 0 || found.beside[h] != found.beside[h / rack * rack] ||
        (h % rack == 0 && h > 0 && found.beside[h] == found.beside[h - 1]))
      return {};
  if (rack > 1) dimensions.push_back({"Switch", static_cast<std::uint32_t>(rack)});
  if (num_hosts > rack) dimensions.push_back({"Switch", static_cast<std::uint32_t>(num_hosts / rack)});
  return dimensions;
}

}  // namespace orrery::topology
