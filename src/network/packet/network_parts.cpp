#include "network_parts.hpp"

#include <algorithm>

#include <boost/pending/disjoint_sets.hpp>

namespace orrery::network {

NetworkParts::NetworkParts(const NetworkView& view) : view_(view), of_port_(view.ports.size(), none) {}

/// Returns the index of the port that stands for all ports which share a buffer with a port.
std::uint32_t NetworkParts::element_of(const Port& port) const {
  return static_cast<std::uint32_t>(
      view_.ports.index_of(view_.ports.is_host(port) ? port : view_.ports.at(port.node, 0)));
}

/// Adds both ends of each link that the packets of a flow pass in one direction.
void NetworkParts::follow(const PacketRouter::FlowKey& key, Path& path) const {
  const PacketSystem& system = view_.system;
  std::uint32_t node = key.source;
  for (std::uint32_t hops = 0; node != key.destination; ++hops) {
    const std::uint16_t number = system.router.port(node, key, view_.events.now());
    if (number == PacketRouter::no_way || hops > system.graph.num_nodes()) {
      path.is_here = false;
      return;
    }
    const Port& out = view_.ports.at(node, number);
    const Port& in = view_.ports.at(out.peer.node, out.peer.port);
    path.is_here = path.is_here && view_.events.is_here(out.node) && view_.events.is_here(in.node);
    path.elements.push_back(element_of(out));
    path.elements.push_back(element_of(in));
    node = in.node;
  }
}

/// Finds the path of the flow in a slot, if it is not known yet. Routes stay as they are.
NetworkParts::Path& NetworkParts::path_of(std::uint32_t slot) {
  Path& path = paths_[slot];
  if (!path.elements.empty()) return path;
  const Flow& flow = view_.hosts.flows[slot];
  path.is_here = true;
  follow({flow.id.source, flow.id.destination, flow.ports}, path);
  follow({flow.id.destination, flow.id.source, flow.ports >> 16U | flow.ports << 16U}, path);
  std::ranges::sort(path.elements);
  path.elements.erase(std::ranges::unique(path.elements).begin(), path.elements.end());
  return path;
}

std::vector<std::uint32_t> NetworkParts::add(const Flow& flow) {
  if (flow.slot >= paths_.size()) {
    paths_.resize(flow.slot + 1);
    of_flow_.resize(flow.slot + 1, none);
  }
  of_flow_[flow.slot] = none;
  paths_[flow.slot].elements.clear();
  std::vector<std::uint32_t> met;
  if (free_.size() == parts_.size()) return met;  // there are no parts
  for (const std::uint32_t element : path_of(flow.slot).elements)
    if (const std::uint32_t part = of_port_[element]; part != none && std::ranges::find(met, part) == met.end())
      met.push_back(part);
  return met;
}

void NetworkParts::dissolve(std::uint32_t number) {
  NetworkPart& part = parts_[number];
  for (const std::uint32_t slot : part.flows) of_flow_[slot] = none;
  for (const std::uint32_t port : part.ports) of_port_[port] = none;
  part = {};
  free_.push_back(number);
}

std::vector<std::uint32_t> NetworkParts::divide() {
  std::vector<std::uint32_t> loose;
  for (std::uint32_t slot = 0; slot < paths_.size(); ++slot)
    if (of_flow_[slot] == none && !view_.hosts.flows[slot].is_over && !path_of(slot).elements.empty())
      loose.push_back(slot);
  std::vector<std::uint32_t> all;
  for (const std::uint32_t slot : loose)
    all.insert(all.end(), paths_[slot].elements.begin(), paths_[slot].elements.end());
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
  const auto number_of = [&](std::uint32_t element) {
    return static_cast<std::size_t>(std::ranges::lower_bound(all, element) - all.begin());
  };
  boost::disjoint_sets_with_storage<> sets(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) sets.make_set(i);
  for (const std::uint32_t slot : loose)
    for (const std::uint32_t element : paths_[slot].elements)
      sets.union_set(number_of(paths_[slot].elements.front()), number_of(element));
  std::vector<std::pair<std::size_t, std::uint32_t>> by_set;
  for (const std::uint32_t slot : loose)
    by_set.emplace_back(sets.find_set(number_of(paths_[slot].elements.front())), slot);
  std::ranges::sort(by_set);
  std::vector<std::uint32_t> made;
  for (auto begin = by_set.begin(); begin != by_set.end();) {
    const auto end = std::find_if(begin, by_set.end(), [&](const auto& entry) { return entry.first != begin->first; });
    made.push_back(make_part({begin, end}));
    begin = end;
  }
  return made;
}

/// Makes a part of flows, all of which are given with one number of a set. Returns the number of the part.
std::uint32_t NetworkParts::make_part(std::span<const std::pair<std::size_t, std::uint32_t>> flows) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(parts_.size()));
    parts_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  NetworkPart& part = parts_[number];
  const auto take = [&](const Port& port) {
    const auto index = static_cast<std::uint32_t>(view_.ports.index_of(port));
    if (of_port_[index] == number) return;
    of_port_[index] = number;
    part.ports.push_back(index);
  };
  for (const auto& [set, slot] : flows) {
    part.flows.push_back(slot);
    of_flow_[slot] = number;
    part.is_here = part.is_here && paths_[slot].is_here;
    for (const std::uint32_t element : paths_[slot].elements) {
      if (of_port_[element] == number) continue;
      const Port& port = view_.ports[element];
      if (view_.ports.is_host(port)) {
        take(port);
        continue;
      }
      part.switches.push_back(port.node);
      for (std::uint32_t p = 0; p < view_.system.graph.ports(port.node).size(); ++p) take(view_.ports.at(port.node, p));
    }
  }
  return number;
}

}  // namespace orrery::network
