// The network of machines: NPUs and switches in place of components.
#include "orrery/topology/network_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::topology {
namespace {

using ComponentKind = ComponentGraph::Kind;

constexpr std::uint32_t no_node = ~std::uint32_t{0};

/// Says whether a name comes before another one, with numbers in them by their values: "xpu.9" before "xpu.10".
bool is_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!a.empty() && !b.empty()) {
    if (!is_digit(a.front()) || !is_digit(b.front())) {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    const auto number = [&](std::string_view& text) {
      std::size_t end = 0;
      while (end < text.size() && is_digit(text[end])) ++end;
      const std::string_view digits = text.substr(0, end);
      text.remove_prefix(end);
      return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
    };
    const std::string_view of_a = number(a), of_b = number(b);
    if (of_a != of_b) return std::pair(of_a.size(), of_a) < std::pair(of_b.size(), of_b);
  }
  return a.size() < b.size();
}

class NetworkMaker {
 public:
  explicit NetworkMaker(const ComponentGraph& components)
      : in_(components), node_of_(components.components.size(), no_node), of_machine_(components.machines.size()) {
    graph_.kinds = components.kinds;
    for (std::uint32_t c = 0; c < in_.components.size(); ++c) of_machine_[in_.components[c].machine].all.push_back(c);
  }

  NetworkGraph make() {
    number_npus();
    find_neighbours();
    share_nics();
    for (std::uint32_t m = 0; m < of_machine_.size(); ++m)
      if (!of_machine_[m].xpus.empty()) add_host_switches(m);
    for (std::uint32_t m = 0; m < of_machine_.size(); ++m)
      if (of_machine_[m].xpus.empty() && is_reached_[m] != 0) add_switch(m);
    for (const ComponentGraph::Link& link : in_.links) add_link(link);
    return std::move(graph_);
  }

 private:
  struct OfMachine {
    std::vector<std::uint32_t> all, xpus, nics;           ///< components
    std::vector<std::vector<std::uint32_t>> xpus_of_nic;  ///< [nics] components; empty: a NIC for each XPU
  };

  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    throw Error(ErrorCode::bad_input, {.file = in_.file}, found, expected);
  }
  std::uint32_t machine(std::uint32_t component) const { return in_.components[component].machine; }

  void number_npus() {
    std::vector<std::uint32_t> npus;
    std::size_t ranked = 0;
    for (OfMachine& of : of_machine_) {
      for (const std::uint32_t c : of.all)
        if (in_.components[c].kind == ComponentKind::xpu) of.xpus.push_back(c);
      of.nics = ends_of_network(of);
      for (const std::uint32_t c : of.xpus) ranked += in_.components[c].rank.has_value();
      npus.insert(npus.end(), of.xpus.begin(), of.xpus.end());
    }
    if (npus.empty())
      fail("the description has no component of choice or type xpu", "machines with XPUs, which are the NPUs");
    if (ranked != 0 && ranked != npus.size())
      fail(fmt::format("{} of {} have a rank", ranked, counted(npus.size(), "XPU")), "a rank for all of them, or none");
    if (ranked != 0) {
      std::ranges::sort(npus, {}, [&](std::uint32_t c) { return *in_.components[c].rank; });
      for (std::uint32_t n = 0; n < npus.size(); ++n)
        if (in_.components[npus[n]].rank != n)
          fail(fmt::format("the ranks of XPUs lack {}", n), fmt::format("0 to {}, each once", npus.size() - 1));
    }
    graph_.num_npus = static_cast<std::uint32_t>(npus.size());
    for (const std::uint32_t c : npus) add_node(c, in_.components[c].name, machine(c));
  }
  /// Returns the NICs of a machine in the order of their names; without NICs its ports.
  std::vector<std::uint32_t> ends_of_network(const OfMachine& of) const {
    for (const ComponentKind kind : {ComponentKind::nic, ComponentKind::port}) {
      std::vector<std::uint32_t> ends;
      for (const std::uint32_t c : of.all)
        if (in_.components[c].kind == kind) ends.push_back(c);
      std::ranges::sort(ends, [&](std::uint32_t a, std::uint32_t b) {
        return is_before(in_.components[a].name, in_.components[b].name);
      });
      if (!ends.empty()) return ends;
    }
    return {};
  }
  void add_node(std::uint32_t component, const std::string& name, std::uint32_t of) {
    node_of_[component] = static_cast<std::uint32_t>(graph_.nodes.size());
    graph_.nodes.push_back({name, of});
  }

  /// Finds which XPUs each switch in a host is joined to, and which machines are reached from hosts.
  void find_neighbours() {
    xpus_of_.resize(in_.components.size());
    std::vector<std::vector<std::uint32_t>> next(of_machine_.size());
    for (const ComponentGraph::Link& link : in_.links)
      for (const auto& [a, b] : {std::pair(link.a, link.b), std::pair(link.b, link.a)}) {
        if (in_.components[a].kind == ComponentKind::network_switch && in_.components[b].kind == ComponentKind::xpu &&
            machine(a) == machine(b))
          xpus_of_[a].insert(b);
        if (machine(a) != machine(b)) next[machine(a)].push_back(machine(b));
      }
    is_reached_.assign(of_machine_.size(), 0);
    std::vector<std::uint32_t> found;
    for (std::uint32_t m = 0; m < of_machine_.size(); ++m)
      if (!of_machine_[m].xpus.empty()) found.push_back(m);
    for (const std::uint32_t m : found) is_reached_[m] = 1;
    while (!found.empty()) {
      const std::uint32_t m = found.back();
      found.pop_back();
      for (const std::uint32_t other : next[m])
        if (is_reached_[other] == 0) {
          is_reached_[other] = 1;
          found.push_back(other);
        }
    }
  }
  void add_host_switches(std::uint32_t m) {
    const OfMachine& of = of_machine_[m];
    for (const std::uint32_t c : of.all)
      if (in_.components[c].kind == ComponentKind::network_switch && of.xpus.size() > 1 &&
          xpus_of_[c].size() == of.xpus.size())
        add_node(c, in_.components[c].name, m);
  }
  void add_switch(std::uint32_t m) {
    const auto node = static_cast<std::uint32_t>(graph_.nodes.size());
    graph_.nodes.push_back({in_.machines[m].name, m});
    for (const std::uint32_t c : of_machine_[m].all) node_of_[c] = node;
  }

  /// Finds the XPUs of each NIC in hosts that have fewer NICs than XPUs.
  void share_nics() {
    const auto is_shared = [](const OfMachine& of) { return !of.nics.empty() && of.nics.size() < of.xpus.size(); };
    if (std::ranges::none_of(of_machine_, is_shared)) return;
    std::vector<std::vector<std::uint32_t>> next(in_.components.size());
    for (const ComponentGraph::Link& link : in_.links)
      if (machine(link.a) == machine(link.b)) {
        next[link.a].push_back(link.b);
        next[link.b].push_back(link.a);
      }
    for (OfMachine& of : of_machine_) {
      if (!is_shared(of)) continue;
      std::map<std::vector<std::uint32_t>, std::vector<std::uint32_t>> xpus_of;  // by the NICs that are nearest to them
      for (const std::uint32_t xpu : of.xpus) xpus_of[nearest_nics(xpu, of, next)].push_back(xpu);
      of.xpus_of_nic.resize(of.nics.size());
      for (const auto& [nics, xpus] : xpus_of)
        for (std::size_t k = 0; k < std::max(nics.size(), xpus.size()); ++k) {
          const std::size_t nic = nics.size() < xpus.size() ? k * nics.size() / xpus.size() : k;
          const std::size_t xpu = nics.size() < xpus.size() ? k : k * xpus.size() / nics.size();
          of.xpus_of_nic[nics[nic]].push_back(xpus[xpu]);
        }
      for (std::size_t n = 0; n < of.nics.size(); ++n)  // one that is the nearest of no XPU is for all of them
        if (of.xpus_of_nic[n].empty()) of.xpus_of_nic[n] = of.xpus;
    }
  }
  /// Returns which NICs of a host are the fewest links away from an XPU: all of them if none can be reached.
  std::vector<std::uint32_t> nearest_nics(std::uint32_t xpu, const OfMachine& of,
                                          const std::vector<std::vector<std::uint32_t>>& next) const {
    std::set<std::uint32_t> seen = {xpu};
    std::vector<std::uint32_t> nearest, front = {xpu};
    while (nearest.empty() && !front.empty()) {
      std::vector<std::uint32_t> beyond;
      for (const std::uint32_t at : front)
        for (const std::uint32_t other : next[at])
          if (seen.insert(other).second) beyond.push_back(other);
      for (std::uint32_t n = 0; n < of.nics.size(); ++n)
        if (std::ranges::find(beyond, of.nics[n]) != beyond.end()) nearest.push_back(n);
      front = std::move(beyond);
    }
    if (nearest.empty())
      for (std::uint32_t n = 0; n < of.nics.size(); ++n) nearest.push_back(n);
    return nearest;
  }

  void add_link(const ComponentGraph::Link& link) {
    const std::uint32_t a = node_of_[link.a], b = node_of_[link.b];
    if (machine(link.a) == machine(link.b)) {
      const bool is_of_npu = a < graph_.num_npus || b < graph_.num_npus;
      if (a != no_node && b != no_node && is_of_npu) graph_.links.push_back({a, b, link.kind});
      return;
    }
    const auto all_a = ends_at(link.a), all_b = ends_at(link.b);
    const std::uint32_t kind = part_of(link.kind, static_cast<std::uint32_t>(all_a.size() * all_b.size()));
    for (const std::uint32_t end : all_a)
      for (const std::uint32_t other : all_b) graph_.links.push_back({end, other, kind});
  }
  /// Returns the nodes of a component that is joined to another machine: of a NIC the NPUs that it is for; none if it
  /// is of a machine without XPUs that no host reaches.
  std::vector<std::uint32_t> ends_at(std::uint32_t component) const {
    if (node_of_[component] != no_node) return {node_of_[component]};
    const OfMachine& of = of_machine_[machine(component)];
    if (of.xpus.empty()) return {};
    const auto found = std::ranges::find(of.nics, component);
    if (found == of.nics.end())
      fail(fmt::format("component '{}' of a host is joined to another machine", cited(in_.components[component].name)),
           "links of NICs, XPUs or switches between machines");
    const auto nic = static_cast<std::size_t>(found - of.nics.begin());
    if (of.xpus_of_nic.empty()) return {node_of_[of.xpus[nic % of.xpus.size()]]};
    std::vector<std::uint32_t> ends;
    for (const std::uint32_t xpu : of.xpus_of_nic[nic]) ends.push_back(node_of_[xpu]);
    return ends;
  }
  /// Returns the kind of links that have a part of the rate of another kind.
  std::uint32_t part_of(std::uint32_t kind, std::uint32_t shared_by) {
    if (shared_by <= 1) return kind;
    const auto [known, is_new] = parts_.emplace(std::pair(kind, shared_by), graph_.kinds.size());
    if (is_new) {
      ComponentGraph::LinkKind part = graph_.kinds[kind];
      part.shared_by = shared_by;
      for (auto* const rate : {&part.bytes_per_ns, &part.bytes_per_ns_back})
        if (*rate) *rate = **rate / shared_by;
      graph_.kinds.push_back(std::move(part));
    }
    return known->second;
  }

  const ComponentGraph& in_;
  NetworkGraph graph_;
  std::vector<std::uint32_t> node_of_;  // [components]
  std::vector<OfMachine> of_machine_;
  std::vector<std::set<std::uint32_t>> xpus_of_;  // [components] of switches: XPUs of the same machine
  std::vector<char> is_reached_;                  // [machines] from hosts
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> parts_;  // kinds, by the whole kind and shared_by
};

}  // namespace

NetworkGraph network_of(const ComponentGraph& components) { return NetworkMaker(components).make(); }

void complete_links(NetworkGraph& graph, const LinkDefaults& defaults, const std::string& file) {
  complete_links(graph, defaults, {.file = file}, "physical.bandwidth and physical.latency of each link",
                 "Add them to the description, or give defaults.");
}

void complete_links(NetworkGraph& graph, const LinkDefaults& defaults, const Place& place, std::string_view expected,
                    std::string_view hint) {
  std::vector<char> is_used(graph.kinds.size(), 0);
  for (const NetworkGraph::Link& link : graph.links) is_used[link.kind] = 1;
  std::set<std::string> no_bandwidth, no_latency, unknown, known;
  for (const auto& [name, physics] : defaults.of_link) unknown.insert(name);
  for (std::size_t k = 0; k < graph.kinds.size(); ++k) {
    ComponentGraph::LinkKind& kind = graph.kinds[k];
    unknown.erase(kind.name);
    known.insert(kind.name);
    const auto own = defaults.of_link.find(kind.name);
    const auto part = [&](double rate) { return rate / kind.shared_by; };
    if (own != defaults.of_link.end() && own->second.bytes_per_ns) kind.bytes_per_ns = part(*own->second.bytes_per_ns);
    if (own != defaults.of_link.end() && own->second.latency_ns) kind.latency_ns = own->second.latency_ns;
    if (!kind.bytes_per_ns && defaults.all.bytes_per_ns) kind.bytes_per_ns = part(*defaults.all.bytes_per_ns);
    if (!kind.latency_ns) kind.latency_ns = defaults.all.latency_ns;
    if (is_used[k] != 0 && !kind.bytes_per_ns) no_bandwidth.insert(kind.name);
    if (is_used[k] != 0 && !kind.latency_ns) no_latency.insert(kind.name);
  }
  const auto listed = [](const std::set<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", cited(name));
    return text;
  };
  if (!unknown.empty())
    throw Error(ErrorCode::bad_input, place,
                fmt::format("there is no link '{}', for which defaults are given", cited(*unknown.begin())),
                fmt::format("a name of links of the description: {}", listed(known)));
  if (no_bandwidth.empty() && no_latency.empty()) return;
  std::string found;
  if (!no_bandwidth.empty()) found = fmt::format("links without bandwidth: {}", listed(no_bandwidth));
  if (!no_latency.empty())
    found += fmt::format("{}links without latency: {}", found.empty() ? "" : "; ", listed(no_latency));
  throw Error(ErrorCode::bad_input, place, found, expected, hint);
}

}  // namespace orrery::topology
