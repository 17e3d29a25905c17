#include "graph_links.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::network {

using topology::LinkId;

GraphLinks::GraphLinks(std::shared_ptr<const GivenGraph> given, std::uint32_t num_npus, Rounding rounding)
    : given_(std::move(given)),
      rounding_(rounding),
      router_(given_->graph, given_->failures, given_->routes),
      first_port_(ports_before(given_->graph)) {
  ensure(num_npus <= given_->graph.num_hosts(), "each NPU has a host");
  std::vector<Time> works_until(given_->graph.links().size(), Time::max());
  for (const auto& [link, time] : given_->failures) works_until[link] = std::min(works_until[link], time);
  for (std::uint32_t node = 0; node < given_->graph.num_nodes(); ++node)
    for (const PacketGraph::Port& port : given_->graph.ports(node))
      links_.push_back({{LinkId(num_links()), 0, NpuId(0), 0}, node, port.peer, port.link, works_until[port.link]});
  deal_links(num_npus);
}

/// Gives each link to the NPU that its node is placed with, as if each NPU were on a rank of its own.
void GraphLinks::deal_links(std::uint32_t num_npus) {
  std::vector<Rank> of_hosts;
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) of_hosts.emplace_back(static_cast<int>(npu));
  for (const Rank owner : place_nodes(given_->graph, of_hosts))
    owner_of_.emplace_back(static_cast<std::uint32_t>(owner.value()));
  first_of_.assign(num_npus + 1, 0);
  for (Direction& direction : links_) {
    direction.link.owner = owner_of_[direction.from];
    direction.link.number = first_of_[direction.link.owner.index() + 1]++;
  }
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) first_of_[npu + 1] += first_of_[npu];
  by_owner_.resize(links_.size());
  for (const auto& [link, from, to, of_graph, works_until] : links_)
    by_owner_[first_of_[link.owner.index()] + link.number] = link.id;
}

topology::Fabric::Ends GraphLinks::ends(const Link& link) const {
  const Direction& direction = links_[link.id.index()];
  return {device_number(given_->graph, direction.from), device_number(given_->graph, direction.to)};
}

LinkId GraphLinks::leaving(std::uint32_t node, const Message& message, Time time) const {
  const std::uint16_t port = router_.port(node, {message.source.value(), message.destination.value(), 0}, time);
  if (port == PacketRouter::no_way) throw unreachable(message.source, message.destination, time);
  return LinkId(first_port_[node] + port);
}

std::optional<LinkId> GraphLinks::next(const Link& link, const Message& message, Time time) const {
  const std::uint32_t node = links_[link.id.index()].to;
  if (node == message.destination.value()) return {};
  return leaving(node, message, time);
}

PacketGraph::Way GraphLinks::way_of(const Link& link) const {
  const Direction& direction = links_[link.id.index()];
  return given_->graph.links()[direction.of_graph].way_to(direction.to);
}

Time GraphLinks::delay(const PacketGraph::Way& way, Bytes size) const {
  return orrery::delay(static_cast<double>(way.delay.ps()) / 1000, size,
                       Bandwidth::from_bytes_per_ns(static_cast<double>(way.rate) / 8e9), rounding_);
}

Time GraphLinks::holds(const Link& link, Bytes size) const { return delay({way_of(link).rate, Time::zero()}, size); }

Time GraphLinks::passes(const Link& link, Bytes size) const {
  return std::max(delay(way_of(link), size), tick(rounding_));
}

Time GraphLinks::least_pass() const {
  Time least = Time::max();
  for (const Direction& direction : links_) least = std::min(least, passes(direction.link, Bytes(0)));
  return least;
}

/// Returns whether a node passes on nothing but what its own NPUs and those of its neighbours send, which are all on
/// its rank.
bool GraphLinks::only_passes_neighbours(std::uint32_t node, std::span<const Rank> of_node) const {
  if (given_->routes.hosts_forward) return false;
  return given_->graph.node(node).is_host ||
         std::ranges::all_of(given_->graph.ports(node), [&](const PacketGraph::Port& port) {
           return given_->graph.node(port.peer).is_host && of_node[port.peer] == of_node[node];
         });
}

// A message goes on at the node to which a link leads. If this is its destination, the source hears of it.
Time GraphLinks::least_pass_between_ranks(const Hosting& hosting) const {
  std::vector<Rank> of_node;
  for (const NpuId owner : owner_of_) of_node.push_back(hosting.of_npu[owner.index()]);
  Time least = Time::max();
  for (const auto& [link, from, to, of_graph, works_until] : links_) {
    const bool may_end = given_->graph.node(to).is_host;
    const bool stays = of_node[from] == of_node[to] && (!may_end || only_passes_neighbours(from, of_node));
    if (!stays) least = std::min(least, passes(link, Bytes(0)));
  }
  return least;
}

}  // namespace orrery::network
