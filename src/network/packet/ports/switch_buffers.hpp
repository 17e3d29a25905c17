#pragma once

#include <cstdint>

#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

/// Divides the buffers of switches among their ports.
class SwitchBuffers {
 public:
  /// The graph and the rules must outlive it.
  SwitchBuffers(const PacketGraph& graph, const PacketRules& rules);

  /// Returns the bytes of a port for packets that arrive after a pause.
  std::int64_t headroom(const PacketGraph::Port& port) const;
  /// Returns n: the port may fill 1 / 2^n of the free shared buffer.
  std::uint32_t share_shift(const PacketGraph::Port& port) const;
  /// Returns the bytes of a switch that its ports share; less than 0 if the reserves and headrooms exceed the buffer.
  std::int64_t shared_size(std::uint32_t node) const;
  /// Throws Error (bad_input) for a switch that drops a full packet even when it is empty. Time: O(ports).
  void require_room() const;

 private:
  const PacketGraph& graph_;
  const PacketRules& rules_;
  std::uint64_t host_rate_ = 0;
};

}  // namespace orrery::network
