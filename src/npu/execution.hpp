#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "accounting.hpp"
#include "awaited_counts.hpp"
#include "context.hpp"
#include "event_kind.hpp"
#include "event_order.hpp"
#include "lookahead.hpp"
#include "node_schedule.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/npu/resumed_from.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::npu {

/// A node that holds a place of a resource.
struct RunningNode {
  static constexpr std::uint32_t no_queue = ~std::uint32_t{0};

  NodeId node;
  Time start;
  Time finish = Time::max();  ///< max() = not known yet
  std::uint16_t resource = 0;
  std::uint32_t last_queue = no_queue;  ///< queue that served last, if the order of events asks for it
  LastArrival last = {};                ///< sender or member that it waits for, once that is known
};

/// What an NPU executes, and what it works with.
class NpuContext {
 public:
  const NpuSpec& npu() const { return npu_; }
  const trace::Node& node(NodeId id) const { return graph_.nodes[id.index()]; }
  const Lookahead& lookahead() const { return lookahead_; }
  const Context& context() const { return context_; }

 protected:
  NpuContext(const NpuSpec& npu, const Lookahead& lookahead, Context& context)
      : npu_(npu), graph_(*npu.program->graph), lookahead_(lookahead), context_(context) {}

  const NpuSpec& npu_;
  const trace::Graph& graph_;
  const Lookahead& lookahead_;
  Context& context_;
};

/// The nodes of an NPU that are under way: when each begins, when it ends, and what follows from its end. What a node
/// does while it is under way is the business of others, who say when it ends.
class Execution : public NpuContext {
 public:
  /// `overrun` becomes this NPU's if it has an earlier one. All arguments outlive it.
  Execution(const NpuSpec& npu, const Lookahead& lookahead, Context& context, std::optional<Overrun>& overrun);

  NodeSchedule& schedule() { return schedule_; }
  const NodeSchedule& schedule() const { return schedule_; }
  Accounting& accounting() { return accounting_; }
  const Accounting& accounting() const { return accounting_; }
  EventOrder& order() const { return *order_; }
  /// The nodes under way whose end is not known.
  AwaitedCounts& awaited() { return awaited_; }
  const AwaitedCounts& awaited() const { return awaited_; }

  /// Starts the first iteration of the trace, or the next one.
  void begin_iteration(Time now);
  /// Begins the service of a node, which holds a place of its resource unless it is a receive.
  void begin(NodeId id, std::uint16_t resource, Time now);
  /// Says when a node ends that holds a place of its resource. A node that ends at `now` does so in
  /// `end_instant_nodes`. `place`: place of the end among simultaneous events; null: the event at hand schedules it.
  void end_at(NodeId id, Time now, Time finish, const EventPlace* place = nullptr);
  /// Ends a receive, which has begun, at `now`, in `end_instant_nodes`.
  void end_receive_at_once(NodeId id, Time now, const Meeting& meeting);
  /// Ends a node that holds a place, and releases what waits for it.
  void complete(NodeId id, Time now);
  /// Ends a receive that has been in service since `posted`, and releases what waits for it. Its sender was `last`.
  void complete_receive(NodeId id, Time posted, const LastArrival& last, Time now);
  /// Ends the nodes that take no time, as far as they end together in the order of events. If all nodes are done then,
  /// starts the next iteration. Returns whether nodes may have become ready.
  bool end_instant_nodes(Time now) {
    if (!order_->has_ends() && !schedule_.may_begin_iteration()) return false;
    return end_and_restart(now);
  }

  /// Returns a node that holds a place.
  RunningNode& running(NodeId id);
  std::span<const RunningNode> all_running() const { return running_; }

  /// Returns an event of which this NPU is the source; its sequence number is the next one.
  pdes::Event make_event(Time time, pdes::Stage stage, LpId target, EventKind kind, std::uint32_t node,
                         std::uint64_t detail = 0);

 private:
  friend class orrery::Archive;
  friend void take_over(Execution& npu, const ResumedFrom* resumed_from);
  void serialize(Archive& archive) {
    archive(schedule_, accounting_, running_);
    order_->serialize_ends(archive);
    archive(sequence_);
    order_->places().serialize(archive);
  }

  bool end_and_restart(Time now);
  Cause cause_of(NodeId id) const;
  void end(NodeId id, const Service& service, Time now);

  NodeSchedule schedule_;
  Accounting accounting_;
  AwaitedCounts awaited_;
  std::vector<RunningNode> running_;
  std::uint64_t sequence_ = 0;  // of events
  std::unique_ptr<EventOrder> order_;
};

/// Makes the state that has been read this NPU's own. `resumed_from`: as for Npu::serialize. O(nodes in it).
void take_over(Execution& npu, const ResumedFrom* resumed_from);

}  // namespace orrery::npu
