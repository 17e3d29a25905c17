#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collectives.hpp"
#include "contention.hpp"
#include "execution.hpp"
#include "messaging.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/npu/resumed_from.hpp"
#include "orrery/npu/wait.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/model.hpp"
#include "thread_blocks.hpp"

namespace orrery::npu {

/// One NPU, which executes its trace: a small state machine. Events end nodes or let them go on; then `settle` lets
/// each resource with a free place take the nodes that come next.
class Npu : private EventHandler {
 public:
  /// `memberships`: [uses of the program] in the communicators of NpuSpec::groups. `overrun` becomes this NPU's if it
  /// has an earlier one. All references outlive it.
  Npu(const NpuSpec& npu, const Lookahead& lookahead, std::vector<communicator::Membership> memberships,
      Context& context, std::optional<Overrun>& overrun);

  /// Makes the first nodes ready at the time that it returns. `settle` must follow then, and nothing may happen here
  /// before.
  Time start() {
    execution_.begin_iteration(start_time());
    return start_time();
  }
  /// Handles an event, or keeps it for `settle` if the order of events wants it. Returns whether `settle` must follow
  /// when all events of this time have been handled.
  bool handle(const pdes::Event& event);
  /// Lets nodes begin at `now` until none can; those that take no time end in between. Goes on with the ends of its
  /// own nodes as long as nothing else can come before, if no other NPU has yet to settle at `now`.
  void settle(Time now, bool is_last);

  /// Keeps the place, among simultaneous events, of an event that another logical process has sent.
  void keep_place_of(const pdes::Event& event) { execution_.order().admit(event); }
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

  /// Writes the state, or reads it. `pending`: the events to come for it. `resumed_from`: the NPU whose state is read;
  /// null: this one. MemberSide::resume must follow.
  void serialize(Archive& archive, std::span<const pdes::Event> pending, const ResumedFrom* resumed_from);

  /// Ends the run before this NPU is done: its times count up to `now`.
  void stop(Time now);
  NpuRecord record() const;
  /// Appends what its thread blocks have sent.
  void list_requests(std::vector<gpu::RequestRecord>& requests) const;
  /// Appends what this NPU waits for.
  void list_waits(std::vector<Wait>& waits) const;

 private:
  /// What need not be found out for each event.
  struct Shortcuts {
    bool runs_ahead = false;  ///< the NPU ends nodes before the kernel sees their events
    bool uses_hosts = false;  ///< the hosts of communicators carry out all its collectives
  };

  Time start_time() const { return execution_.context().options.start_of(id()); }
  void settle_at(Time now);
  void run_ahead();
  bool handle_now(const pdes::Event& event) override;
  void begin_ready(Time now) override;
  void end_event(Time now) override;
  LastArrival departure_of(const pdes::Event& event) const override {
    return messaging_->departure_of(execution_, event);
  }
  Time last_step(NodeId collective) const override { return execution_.context().last_step(membership(collective)); }
  void issue(NodeId id, std::uint16_t resource, Time now);
  void issue_access(NodeId id, Time now);
  void issue_collective(NodeId id, Time now);
  Time turn_to(GroupId group, Time now);
  bool end_on_links(std::optional<NodeId> over, Time now);
  Time compute_time(NodeId id) const;
  pdes::Awaited awaited_by(NodeId id) const;
  Time least_lead(std::size_t resource, const Distances& distances) const;
  pdes::LookaheadBound bound(const Distances& distances, Time posted, Time arriving) const;
  Wait wait_of(const RunningNode& running) const;
  const communicator::Membership& membership(NodeId id) const {
    return memberships_[execution_.npu().program->use_of_node(id)];
  }

  Execution execution_;
  std::unique_ptr<Messaging> messaging_;
  std::unique_ptr<Collectives> collectives_;
  std::unique_ptr<ThreadBlocks> blocks_;
  std::vector<communicator::Membership> memberships_;  // [uses]
  std::unique_ptr<Contention> contention_;
  std::uint64_t draws_as_;           // what all its draws of noise begin with
  memory::MemoryServer own_memory_;  // if no memory is shared
  Shortcuts shortcuts_;
  collective::Turn next_turn_;   // communicator::Join::turn of the next collective
  bool has_settled_ = false;     // its first nodes have begun
  bool has_broken_off_ = false;  // `settle`, because receives are undecided
  bool has_ended_ = false;       // it is done, and has counted its time
  std::uint32_t circuits_ = 0;   // configuration in which its ports are
};

}  // namespace orrery::npu
