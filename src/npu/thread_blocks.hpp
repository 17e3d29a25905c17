#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "execution.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/gpu/record.hpp"
#include "orrery/network/message.hpp"

namespace orrery::npu {

/// The thread blocks of an NPU, which carry out collectives. This base class is an NPU that has none.
class ThreadBlocks {
 public:
  virtual ~ThreadBlocks() = default;

  /// Returns whether blocks of other NPUs may ask for data of this one at any time.
  virtual bool may_be_asked() const { return false; }
  /// Joins the collective of a node that holds a place, if a plan carries it out; else returns false. Throws Error
  /// (bad_input) if the plan needs a switch that its GPUs do not have.
  virtual bool join(Execution&, NodeId, GroupId, const communicator::Membership&, Time /*now*/) { return false; }
  /// Takes in a request of another GPU, perhaps of a collective that this NPU has not joined yet, or is through with.
  virtual void arrive(Execution& npu, const network::Message& message, Time now);
  /// Handles an event for the thread blocks.
  virtual void handle(Execution& npu, const pdes::Event& event);
  /// Ends a time: hands what blocks offer at this time to the links, in the order of bursts, then blocks.
  virtual void settle(Execution&, Time /*now*/) {}

  /// Writes the state, or reads it.
  virtual void serialize(Execution&, const std::vector<communicator::Membership>&, Archive&) {}

  /// Returns what the blocks of the kernel of a node wait for, one line each.
  virtual std::vector<std::string> waits(NodeId) const { return {}; }
  /// Returns the SMs that blocks hold.
  virtual std::uint32_t sms() const { return 0; }
  /// Returns what this NPU has sent, by peer.
  virtual std::vector<gpu::RequestRecord> sent(NpuId /*self*/) const { return {}; }
};

/// Returns the thread blocks of an NPU.
std::unique_ptr<ThreadBlocks> make_thread_blocks(const Context& context);

}  // namespace orrery::npu
