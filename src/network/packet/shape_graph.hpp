#pragma once

#include <cstdint>
#include <vector>

#include "orrery/network/options.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/topology/fabric.hpp"

namespace orrery::network {

/// The links of a topology as a graph: NPU i is node i, and the switches follow in the order of Fabric::switches. The
/// two directions of a link are one link of the graph. Routes come from the shapes.
class ShapeGraph {
 public:
  /// The fabric must outlive it. Throws Error (bad_input) for what packets cannot pass: an oversubscribed switch.
  ShapeGraph(const topology::Fabric& fabric, const Options& options);

  const PacketGraph& graph() const { return graph_; }
  /// Returns the port over which packets for an NPU leave a node.
  std::uint16_t port_towards(std::uint32_t node, std::uint32_t npu) const;
  /// Returns the link of the topology by which packets leave a port.
  topology::Fabric::Link link_of(std::uint32_t node, std::uint32_t port) const {
    return fabric_.find(links_[node][port]);
  }

 private:
  struct Direction {
    topology::LinkId link;
    std::uint32_t from = 0, to = 0;  ///< nodes
  };
  std::vector<Direction> directions() const;
  void refuse_cores() const;

  const topology::Fabric& fabric_;
  PacketGraph graph_;
  std::vector<std::vector<topology::LinkId>> links_;  // [nodes][ports]
  std::vector<std::uint32_t> ports_;                  // [links of the fabric] port at the node that it leads from
  std::vector<topology::LinkId> into_;                // [nodes] a link that leads to the node
};

}  // namespace orrery::network
