#pragma once

#include <span>

#include "orrery/base/ids.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/network/packet_recording.hpp"
#include "orrery/network/packet_router.hpp"
#include "orrery/network/packet_rules.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::network {

class ReductionTrees;

/// The packet network as all ranks know it. Everything in it outlives the simulation.
struct PacketSystem {
  const PacketGraph& graph;
  const PacketRules& rules;
  const PacketRouter& router;
  std::span<const LinkFailure> failures;
  const ReductionTrees* trees = nullptr;  ///< trees of switches that reduce; null: none do
};

/// The nodes of one rank.
struct PacketPart {
  pdes::Scheduler& kernel;
  Rank here;
  std::span<const Rank> of_node;  ///< [nodes]
  LpId first_process;             ///< LP of node 0
  /// Simultaneous events keep the order in which they were scheduled, as in ns-3. One rank only.
  bool in_scheduling_order = false;
  PacketRecording recording = {};
};

}  // namespace orrery::network
