#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "execution.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/communicator/member_side.hpp"

namespace orrery::npu {

/// How the nodes of an NPU contend: collectives take compute units from compute nodes, and yield bandwidth
/// to other collectives. This base class is an NPU where none does, so each node ends when it was said to end.
class Contention {
 public:
  /// The nodes that contend. Of others `defer` returns false, and the calls for their begins and ends do nothing.
  struct Contending {
    bool compute = false;         ///< compute nodes
    bool collectives = false;     ///< all collectives
    std::vector<bool> uses = {};  ///< [uses] collectives of the use, besides; may be empty
  };

  virtual ~Contention() = default;

  /// Returns whether a node contends.
  bool contends(const Program& program, NodeId id) const {
    if (program.graph->nodes[id.index()].kind != trace::NodeKind::collective) return contends_compute();
    return contends(program.use_of_node(id));
  }
  /// Returns whether nodes that are no collectives contend.
  bool contends_compute() const { return contending_.compute; }
  /// Returns whether the collectives of a use contend.
  bool contends(std::uint32_t use) const {
    return contending_.collectives || (!contending_.uses.empty() && contending_.uses[use]);
  }

  /// Returns whether ends of nodes are deferred by what happens meanwhile, besides what collectives yield.
  virtual bool depends_on_events() const { return false; }

  /// Begins a compute node that takes `takes` alone. Returns when it ends; none: `hold_sms` will say when.
  virtual std::optional<Time> begin_compute(NodeId, Time takes, Time now) { return now + takes; }
  /// Begins a collective among several members.
  virtual void begin_transfer(NodeId, Time /*now*/) {}
  /// Lets a collective that its host carries out yield to others.
  virtual void begin_yielding(NodeId, Time /*now*/) {}
  /// Returns whether a node that would end now ends later, and says when.
  virtual bool defer(NodeId, Time /*now*/) { return false; }
  /// Counts what compute nodes lose to a collective that ends.
  virtual void end_transfer(NodeId, Time /*now*/) {}
  /// Moves the ends of compute nodes if thread blocks hold another number of SMs.
  virtual void hold_sms(std::uint32_t /*sms*/, Time /*now*/) {}

  virtual void serialize(Archive&) {}
  virtual void serialize_sms(Archive&) {}

 protected:
  Contending contending_;
};

/// Returns the contention of an NPU. `memberships`: [uses of the program]. Both outlive it.
std::unique_ptr<Contention> make_contention(Execution& npu, const std::vector<communicator::Membership>& memberships);

}  // namespace orrery::npu
