#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "orrery/trace/graph.hpp"

namespace orrery::test_support {

/// Graphs made by hand. Nodes are numbered from 0 in the order in which they are added and wait for earlier ones.
class GraphBuilder {
 public:
  using Ids = std::initializer_list<std::uint32_t>;

  /// A node with a recorded duration.
  std::uint32_t timed(trace::NodeKind kind, std::int64_t ns, Ids after) {
    trace::Node node{};
    node.kind = kind;
    return add(node, ns, after);
  }
  std::uint32_t collective(std::uint32_t group_slot, std::uint64_t dimensions, Ids after) {
    trace::Node node{};
    node.kind = trace::NodeKind::collective;
    node.slot = group_slot;
    node.detail = dimensions;
    node.size = 1024;
    return add(node, 0, after);
  }
  /// A send or a receive.
  std::uint32_t message(trace::NodeKind kind, std::uint32_t peer_slot, Ids after) {
    trace::Node node{};
    node.kind = kind;
    node.slot = peer_slot;
    node.size = 1024;
    return add(node, 0, after);
  }
  trace::Node& node(std::uint32_t id) { return nodes_[id]; }

  std::shared_ptr<const trace::Graph> build() const {
    auto graph = std::make_shared<trace::Graph>();
    graph->nodes = nodes_;
    graph->nodes.emplace_back();
    graph->durations = durations_;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      graph->nodes[i].first_successor = static_cast<std::uint32_t>(graph->successors.size());
      graph->successors.insert(graph->successors.end(), successors_[i].begin(), successors_[i].end());
    }
    graph->nodes.back().first_successor = static_cast<std::uint32_t>(graph->successors.size());
    return graph;
  }

 private:
  std::uint32_t add(trace::Node node, std::int64_t ns, Ids after) {
    const auto id = static_cast<std::uint32_t>(nodes_.size());
    node.num_dependencies = static_cast<std::uint32_t>(after.size());
    nodes_.push_back(node);
    durations_.push_back(Time::from_ns(ns));
    successors_.emplace_back();
    for (const auto before : after) successors_[before].push_back(id);
    return id;
  }

  std::vector<trace::Node> nodes_;
  std::vector<Time> durations_;
  std::vector<std::vector<std::uint32_t>> successors_;
};

}  // namespace orrery::test_support
