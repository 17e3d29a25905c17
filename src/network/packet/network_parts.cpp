#include "network_parts.hpp"

#include <algorithm>
#include <numeric>

namespace orrery::network {

NetworkParts::NetworkParts(PacketDevices& devices)
    : devices_(devices), of_port_(devices.ports_.size(), none), joined_to_(devices.ports_.size()) {
  std::iota(joined_to_.begin(), joined_to_.end(), 0U);
}

/// Returns the port that stands for all that shares something with a port.
std::uint32_t NetworkParts::element_of(const Port& port) const {
  return static_cast<std::uint32_t>(devices_.is_host(port) ? devices_.index_of(port)
                                                           : devices_.nodes_[port.node].first_port);
}

/// Adds what the packets of a flow pass in one direction: both ends of each link.
void NetworkParts::follow(const PacketRouter::FlowKey& key, Path& path) const {
  const PacketDevices::System& system = devices_.system_;
  std::uint32_t node = key.source;
  for (std::uint32_t hops = 0; node != key.destination; ++hops) {
    const std::uint16_t number = system.router.port(node, key, devices_.now());
    if (number == PacketRouter::no_way || hops > system.graph.num_nodes()) {
      path.is_here = false;
      return;
    }
    const Port& out = devices_.port(node, number);
    const Port& in = devices_.port(out.peer.node, out.peer.port);
    path.is_here = path.is_here && devices_.is_here(out.node) && devices_.is_here(in.node);
    path.elements.push_back(element_of(out));
    path.elements.push_back(element_of(in));
    node = in.node;
  }
}

std::vector<std::uint32_t> NetworkParts::add(const Flow& flow) {
  if (flow.slot >= paths_.size()) {
    paths_.resize(flow.slot + 1);
    of_flow_.resize(flow.slot + 1, none);
  }
  Path path{.flow = flow.id, .elements = {}, .is_here = true};
  follow({flow.id.source, flow.id.destination, flow.ports}, path);
  follow({flow.id.destination, flow.id.source, flow.ports >> 16U | flow.ports << 16U}, path);
  std::ranges::sort(path.elements);
  path.elements.erase(std::ranges::unique(path.elements).begin(), path.elements.end());
  std::vector<std::uint32_t> met;
  for (const std::uint32_t element : path.elements)
    if (const std::uint32_t part = of_port_[element]; part != none && std::ranges::find(met, part) == met.end())
      met.push_back(part);
  of_flow_[flow.slot] = none;
  num_loose_ += path.elements.size();
  paths_[flow.slot] = std::move(path);
  loose_.push_back(flow.slot);
  return met;
}

void NetworkParts::dissolve(std::uint32_t number) {
  NetworkPart& part = parts_[number];
  for (const std::uint32_t slot : part.flows) {
    of_flow_[slot] = none;
    if (!is_current(slot)) continue;
    loose_.push_back(slot);
    num_loose_ += paths_[slot].elements.size();
  }
  for (const std::uint32_t port : part.ports) of_port_[port] = none;
  part = {};
  free_.push_back(number);
}

/// Returns whether the flow of a path is there and not over.
bool NetworkParts::is_current(std::uint32_t slot) const {
  const Flow& flow = devices_.flows_[slot];
  return flow.id.number == paths_[slot].flow.number && flow.id.source == paths_[slot].flow.source && !flow.is_over;
}

std::uint32_t NetworkParts::root_of(std::uint32_t element) {
  while (joined_to_[element] != element) element = joined_to_[element] = joined_to_[joined_to_[element]];
  return element;
}

std::vector<std::uint32_t> NetworkParts::divide() {
  std::ranges::sort(loose_);
  loose_.erase(std::ranges::unique(loose_).begin(), loose_.end());
  std::erase_if(loose_, [&](std::uint32_t slot) { return !is_current(slot) || of_flow_[slot] != none; });
  for (const std::uint32_t slot : loose_)
    for (const std::uint32_t element : paths_[slot].elements)
      joined_to_[root_of(element)] = root_of(paths_[slot].elements.front());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> by_root;
  for (const std::uint32_t slot : loose_)
    if (!paths_[slot].elements.empty()) by_root.emplace_back(root_of(paths_[slot].elements.front()), slot);
  std::ranges::sort(by_root);
  for (const std::uint32_t slot : loose_)
    for (const std::uint32_t element : paths_[slot].elements) joined_to_[element] = element;
  std::vector<std::uint32_t> made;
  for (auto begin = by_root.begin(); begin != by_root.end();) {
    const auto end = std::find_if(begin, by_root.end(), [&](const auto& entry) { return entry.first != begin->first; });
    made.push_back(make_part({begin, end}));
    begin = end;
  }
  loose_.clear();
  num_loose_ = 0;
  return made;
}

/// Makes a part of flows, which are given with a number that is the same for all. Returns its number.
std::uint32_t NetworkParts::make_part(std::span<const std::pair<std::uint32_t, std::uint32_t>> flows) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(parts_.size()));
    parts_.emplace_back();
  }
  const std::uint32_t number = free_.back();
  free_.pop_back();
  NetworkPart& part = parts_[number];
  const auto take = [&](const Port& port) {
    const auto index = static_cast<std::uint32_t>(devices_.index_of(port));
    if (of_port_[index] == number) return;
    of_port_[index] = number;
    part.ports.push_back(index);
  };
  for (const auto& [root, slot] : flows) {
    part.flows.push_back(slot);
    of_flow_[slot] = number;
    part.is_here = part.is_here && paths_[slot].is_here;
    for (const std::uint32_t element : paths_[slot].elements) {
      if (of_port_[element] == number) continue;
      const Port& port = devices_.ports_[element];
      if (devices_.is_host(port)) {
        take(port);
        continue;
      }
      part.switches.push_back(port.node);
      for (std::uint32_t p = 0; p < devices_.system_.graph.ports(port.node).size(); ++p)
        take(devices_.port(port.node, p));
    }
  }
  return number;
}

}  // namespace orrery::network
