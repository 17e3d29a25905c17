#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "messages.hpp"
#include "orrery/base/error.hpp"
#include "ports/switch_buffers.hpp"
#include "relay_delays.hpp"

namespace orrery::network {

PacketPlan::PacketPlan(const topology::Topology& topology, const Options& options)
    : rules_(options.packets.with_sizes()), recording_(options.recording) {
  if (options.graph)
    use_graph(*options.graph, topology.num_npus());
  else
    use_shapes(topology, options);
  if (rules_.keeps_buffers()) SwitchBuffers(*graph_, rules_).require_room();
  windows_.emplace(*graph_, *router_, rules_);
  add_trees(options.reduction_groups);
  least_relay_ = RelayDelays(*graph_, rules_, std::vector<Rank>(graph_->num_nodes()), 1).least();
}

void PacketPlan::use_shapes(const topology::Topology& topology, const Options& options) {
  fabric_.emplace(topology);
  shape_.emplace(*fabric_, options);
  graph_ = &shape_->graph();
  router_.emplace(*graph_, [this](std::uint32_t node, std::uint32_t host) { return shape_->port_towards(node, host); });
}

void PacketPlan::use_graph(const GivenGraph& given, std::uint32_t num_npus) {
  ensure(num_npus <= given.graph.num_hosts(), "each NPU has a host");
  given_ = given.graph;
  given_.set_buffers(Bytes(rules_.buffer));
  failures_ = given.failures;
  router_.emplace(given_, failures_, given.routes);
  first_port_ = ports_before(given_);
}

/// Process groups with the same members have the same trees, but numbers of their own for their collectives.
void PacketPlan::add_trees(std::span<const ReductionGroup> groups) {
  if (groups.empty()) return;
  trees_.emplace(*graph_, rules_.reduction, failures_);
  for (const ReductionGroup& group : groups) {
    std::vector<std::uint32_t> hosts;
    for (const NpuId npu : group.members) hosts.push_back(graph_->host(npu.value()));
    first_tree_of_.emplace(std::pair(group.communicator, group.members),
                           trees_->add_communicator(hosts, group.communicator.value()));
  }
  trees_->finish();
}

std::uint32_t PacketPlan::tree_of(const Message& message, std::vector<NpuId> members) const {
  std::ranges::sort(members);
  const auto found = first_tree_of_.find({message.step.group, std::move(members)});
  ensure(found != first_tree_of_.end(), "switches reduce in a communicator without trees");
  return found->second + message.combining.chunk % rules_.reduction.trees;
}

Time PacketPlan::least_relay_between(std::span<const Rank> of_node) const {
  const int num_ranks = std::ranges::max(of_node).value() + 1;
  return RelayDelays(*graph_, rules_, of_node, num_ranks).least_between();
}

LinkRecord PacketPlan::describe(std::uint32_t node, std::uint32_t port) const {
  LinkRecord record;
  if (shape_) {
    const topology::Fabric::Link link = shape_->link_of(node, port);
    const auto [from, to] = fabric_->ends(link);
    record.link = link.id.value();
    record.dimension = link.dimension;
    record.from = from;
    record.to = to;
    return record;
  }
  record.link = first_port_[node] + port;
  record.from = device_number(given_, node);
  record.to = device_number(given_, given_.ports(node)[port].peer);
  return record;
}

}  // namespace orrery::network
