#pragma once

#include <cstddef>
#include <vector>

#include "histories.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::npu {

/// The nodes of an NPU that end at the time at hand, and which of them ends next where they do so one by one
/// (Options::one_by_one). A receive does so in an event of its own, and other nodes in the event that has what the NPU
/// has in store for itself.
class InstantNodes {
 public:
  /// `histories`: null if events have none. Both arguments outlive this.
  InstantNodes(const trace::Graph& graph, Histories* histories) : graph_(graph), histories_(histories) {}

  bool empty() const { return nodes_.empty(); }
  /// Exchanges all of them for `nodes`. Where events have histories, there must be none.
  void swap(std::vector<NodeId>& nodes) {
    ensure(histories_ == nullptr || nodes_.empty(), "nodes are exchanged without their histories");
    nodes_.swap(nodes);
  }

  /// `history`: of the end, if events have histories.
  void add(NodeId id, const EventHistory& history) {
    nodes_.push_back(id);
    if (histories_ != nullptr) histories_->add_stored_instant(history);
  }
  /// Does the same for a receive. `is_shared`: its event is that in which the message is there, which ends the send.
  void add_receive(NodeId id, const EventHistory& history, bool is_shared) {
    nodes_.push_back(id);
    if (histories_ != nullptr) histories_->add_instant(history, is_shared);
  }
  /// Adds a node of which `tell` must say whether it ends now. Until then nothing ends that comes later. Returns the
  /// history of the event in which it then ends. Where events have histories.
  EventHistory add_awaited(NodeId id, const EventHistory& history) {
    nodes_.push_back(id);
    return histories_->add_stored_instant(history, true);
  }
  /// Says in which event such a node ends; of no event: not at this time.
  void tell(NodeId id, const EventHistory& history);
  bool holds(NodeId id) const;
  /// Returns whether a node that is awaited comes before all others.
  bool is_held_up() const { return histories_ != nullptr && histories_->is_held_up(); }

  /// Begins the event in which the next node ends, and takes the node out. There must be one, and it is not awaited.
  NodeId take();

  // Where events have no histories.
  /// Says whether the event at hand has what the NPU has in store for itself.
  void set_in_store(bool is_in_store) { is_in_store_ = is_in_store; }
  /// Returns whether the next node ends in the event at hand.
  bool is_in_event() const { return is_in_store_ && first_stored() < nodes_.size(); }

  void serialize(Archive& archive) { archive(nodes_); }

 private:
  bool is_stored(NodeId id) const { return graph_.nodes[id.index()].kind != trace::NodeKind::receive; }
  std::size_t first_stored() const;

  const trace::Graph& graph_;
  Histories* histories_;
  std::vector<NodeId> nodes_;  // with histories each has one in Histories
  bool is_in_store_ = false;
};

}  // namespace orrery::npu
