#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "execution.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/network/message.hpp"

namespace orrery::npu {

/// The collectives that an NPU carries out itself. This base class has none: the hosts of communicators carry all of
/// them out.
class Collectives {
 public:
  virtual ~Collectives() = default;

  /// Returns whether the NPU carries its collectives out itself, over links.
  virtual bool are_here() const { return false; }
  /// Joins the collective of a node that holds a place. `dark`: time after which its first step begins, because the
  /// ports of the NPU change their circuits. Returns whether the collective is over for this NPU already.
  virtual bool join(Execution& npu, NodeId id, GroupId group, const communicator::Membership& membership, Time now,
                    std::optional<collective::Turn> turn, Time dark);

  // Each of these returns the node whose collective has ended for this NPU, if there is one.

  /// Takes in a message of another member, perhaps of a collective that this NPU has not joined yet.
  virtual std::optional<NodeId> arrive(Execution& npu, const network::Message& message, Time now);
  /// Goes on with the collective of a node where this step waited for a time.
  virtual std::optional<NodeId> wake(Execution& npu, NodeId id, network::StepId step, Time now);
  /// Ends an event of this NPU, which has begun what it begins because of it.
  virtual std::optional<NodeId> end_event(Execution&, Time /*now*/) { return {}; }

  /// Writes the state, or reads it.
  virtual void serialize(Execution&, const std::vector<communicator::Membership>&, Archive&) {}

  /// Returns whether the collective of this node is under way here.
  virtual bool is_under_way(NodeId) const { return false; }
  /// Returns whether others will still ask for data of a collective that is over for this NPU (rendezvous).
  virtual bool is_asked_for_more() const { return false; }
};

/// Returns the collectives of an NPU: over links where there are any.
std::unique_ptr<Collectives> make_collectives(const Context& context);

}  // namespace orrery::npu
