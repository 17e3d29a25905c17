#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives.hpp"
#include "execution.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/collective/member_run.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/network/link_servers.hpp"

namespace orrery::npu {

/// The collectives of an NPU that go over the links of the congestion-aware network, where each member runs its part
/// itself, message by message.
class LinkCollectives final : public Collectives {
 public:
  bool are_here() const override { return true; }
  bool join(Execution& npu, NodeId id, GroupId group, const communicator::Membership& membership, Time now,
            std::optional<collective::Turn> turn, Time dark) override;
  std::optional<NodeId> arrive(Execution& npu, const network::Message& message, Time now) override;
  std::optional<NodeId> wake(Execution& npu, NodeId id, network::StepId step, Time now) override;
  std::optional<NodeId> end_event(Execution& npu, Time now) override;
  void serialize(Execution& npu, const std::vector<communicator::Membership>& memberships, Archive& archive) override;
  bool is_under_way(NodeId id) const override;
  bool is_asked_for_more() const override;

 private:
  /// A collective that this NPU has joined.
  struct Joined {
    GroupId group;
    std::uint32_t ordinal = 0;
    NodeId node;
    communicator::Membership membership;
    collective::Turn turn;
    collective::MemberRun run;
    LastArrival last;      ///< last arrival of the members, as far as their messages have told
    bool is_over = false;  ///< this NPU is through; others will still ask for data
  };
  class LinkTransport;

  void leave(Execution& npu, Joined& joined, Time now);
  std::optional<NodeId> leave_if_done(Execution& npu, Joined& joined, Time now);

  std::vector<std::unique_ptr<Joined>> joined_;  // in the order of joining
  std::vector<network::Message> early_;          // of collectives that this NPU has not joined
  // Of the event at hand: the place of the queue whose service was the last of a collective, as from its dimension's
  // first queue; and the node of a collective that was joined before it was free.
  std::optional<std::uint32_t> held_queue_;
  std::optional<NodeId> joined_beside_;
};

}  // namespace orrery::npu
