#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "event_place.hpp"
#include "execution.hpp"
#include "gpu_collectives.hpp"
#include "held_units.hpp"
#include "link_collectives.hpp"
#include "messaging.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/npu/predecessor.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/npu/wait.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/model.hpp"
#include "queue_turn.hpp"
#include "shared_sms.hpp"
#include "shared_units.hpp"
#include "yielding.hpp"

namespace orrery::npu {

/// One NPU, which executes its trace: a small state machine. Events end nodes or let them go on; then `settle` lets
/// each resource with a free place take the nodes that come next.
class Npu {
 public:
  /// `memberships`: [uses of the program] in the communicators of NpuSpec::groups. `overrun` becomes this NPU's if it
  /// has an earlier one. All references outlive it.
  Npu(const NpuSpec& npu, const Lookahead& lookahead, std::vector<communicator::Membership> memberships,
      Context& context, std::optional<Overrun>& overrun);

  /// Makes the first nodes ready at `start_time`. `settle` must follow then, and nothing may happen here before.
  void start() { execution_.begin_iteration(start_time()); }
  Time start_time() const { return execution_.context().options.start_of(id()); }
  /// Handles an event, or keeps it for `settle` (Options::one_by_one). Returns whether `settle` must follow when all
  /// events of this time have been handled.
  bool handle(const pdes::Event& event);
  /// Lets nodes begin at `now` until none can; those that take no time end in between. Goes on with the ends of its
  /// own nodes as long as nothing else can come before, if no other NPU has yet to settle at `now`.
  void settle(Time now, bool is_last);

  /// Keeps the history of an event that has come from another logical process, if it has one.
  void keep_history_of(const pdes::Event& event);
  /// See pdes::Model::admit. `event` is of another NPU, not of a server or of the links.
  bool admit(pdes::Event& event) { return messaging_->admit(execution_, event); }
  /// Takes note that the end of a node has become known, which another LP decides; max() if it is out of range.
  void announce(const communicator::Completion& completion);
  /// See pdes::Model::awaits.
  pdes::Awaited awaits() const;
  /// Returns how far ahead this NPU can be seen.
  pdes::LookaheadBounds lookahead() const;
  /// See pdes::Model::lookahead_of_cell: this NPU's part. There are several cells.
  pdes::LookaheadBound lookahead_of_cell() const;

  NpuId id() const { return execution_.npu().id; }
  LpId lp() const { return execution_.npu().lp(); }
  bool is_done() const { return execution_.schedule().is_done(); }
  std::uint64_t completed() const { return execution_.schedule().completed(); }  ///< nodes
  const Accounting& accounting() const { return execution_.accounting(); }

  /// Writes the state, or reads it. `pending`: the events to come for it. `predecessor`: the NPU whose state is read;
  /// null: this one. MemberSide::resume must follow.
  void serialize(Archive& archive, std::span<const pdes::Event> pending, const Predecessor* predecessor);

  /// Ends the run before this NPU is done: its times count up to `now`.
  void stop(Time now);
  NpuRecord record() const;
  /// Appends what its thread blocks have sent.
  void list_requests(std::vector<gpu::RequestRecord>& requests) const;
  /// Appends what this NPU waits for.
  void list_waits(std::vector<Wait>& waits) const;

 private:
  /// An event of the time at hand, and its place.
  struct Ordered {
    EventHistory history, own;
    pdes::Event event;
    bool is_in_store = false;
  };

  void settle_at(Time now);
  void go_ahead();
  bool apply(const pdes::Event& event);
  void apply_one_by_one(Time now);
  void apply_with_histories(Time now);
  EventPlace place_of(const pdes::Event& event);
  EventHistory take_history_of(const pdes::Event& event);
  void keep_history_of_end(const communicator::Completion& completion);
  bool apply_in_order(const pdes::Event& event, Time now);
  void hold_queue(const pdes::Event& event);
  void free_queue(Time now);
  bool tells_of_access(const pdes::Event& event);
  void put_off(std::span<const Ordered> events);
  bool begin_event(const pdes::Event& event, const EventHistory& history, bool is_in_store, Time now);
  void begin_ready(Time now);
  static std::size_t next_resource(const Resources& resources);
  void issue(NodeId id, std::uint16_t resource, Time now);
  void issue_access(NodeId id, Time now);
  void issue_collective(NodeId id, Time now);
  Time turn_to(GroupId group);
  bool end_on_links(std::optional<NodeId> over, Time now);
  void share_sms(Time now);
  bool is_put_off(NodeId id, Time now);
  Time owed_to_collective(NodeId id, Time now);
  void end_transfer(NodeId id, Time now);
  double share_of(NodeId id) const;
  Time owed_to_compute(NodeId id, Time now);
  Time compute_time(NodeId id) const;
  pdes::Awaited awaited_by(NodeId id) const;
  Time least_lead(std::size_t resource, const Distances& distances) const;
  pdes::LookaheadBound bound(const Distances& distances, Time posted, Time arriving) const;
  Wait wait_of(const RunningNode& running) const;
  const communicator::Membership& membership(NodeId id) const {
    return memberships_[execution_.npu().program->use_of_node(id)];
  }
  /// Says whether a node is an exchange of experts that holds compute units.
  bool holds_units(NodeId id) const;
  /// Returns the set of dimensions in which a collective takes its turns.
  std::size_t set_of(NodeId id) const {
    const GroupId group = execution_.npu().groups[execution_.npu().program->use_of_node(id)];
    return execution_.context().streams.of_group[group.index()] - std::size_t{1};
  }

  /// What takes compute units from compute nodes; null where nothing does.
  struct ComputeUnits {
    std::unique_ptr<SharedSms> sms;       ///< thread blocks of collectives
    std::unique_ptr<SharedUnits> shared;  ///< collectives
    std::unique_ptr<HeldUnits> held;      ///< exchanges of experts
  };

  Execution execution_;
  std::unique_ptr<Messaging> messaging_;
  std::unique_ptr<LinkCollectives> collectives_;       // null if hosts of communicators carry collectives out
  std::unique_ptr<GpuCollectives> gpu_;                // null if no thread blocks carry out collectives
  std::vector<communicator::Membership> memberships_;  // [uses]
  std::unique_ptr<Yielding> yielding_;                 // null if no collective yields here
  ComputeUnits units_;
  memory::MemoryServer own_memory_;  // if no memory is shared
  bool goes_ahead_ = false;          // it ends nodes before the kernel sees their events
  QueueTurn queues_;
  std::unique_ptr<std::vector<pdes::Event>> moment_;  // that `settle` handles; null without Options::one_by_one
  bool has_settled_ = false;                          // its first nodes have begun
  bool has_broken_off_ = false;                       // `settle`, because of doubts
  bool has_ended_ = false;                            // it is done, and has counted its time
  std::uint32_t circuits_ = 0;                        // configuration in which its ports are
};

}  // namespace orrery::npu
