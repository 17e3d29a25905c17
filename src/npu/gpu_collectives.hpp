#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "execution.hpp"
#include "gpu_system.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/gpu/ports.hpp"
#include "orrery/network/message.hpp"

namespace orrery::npu {

/// The collectives of an NPU that its thread blocks carry out (gpu::Device): each is a kernel. Blocks are resumed by
/// events of the NPU for itself. Their requests pass the links of the network as messages, and the owner of memory
/// answers, whether it has a kernel or not.
class GpuCollectives {
 public:
  explicit GpuCollectives(GpuSystem& system);
  ~GpuCollectives();

  /// Joins the collective of a node that holds a place, if a plan carries it out; else returns false. Throws Error
  /// (bad_input) if the plan needs a switch that its GPUs do not have.
  bool join(Execution& npu, NodeId id, GroupId group, const communicator::Membership& membership, Time now);
  /// Takes in a request of another GPU, perhaps of a collective that this NPU has not joined yet, or is through with.
  void arrive(Execution& npu, const network::Message& message, Time now);
  /// Handles an event for the thread blocks.
  void handle(Execution& npu, const pdes::Event& event);
  /// Ends a time: hands what blocks offer at this time to the links, in the order of bursts, then blocks.
  void settle(Execution& npu, Time now);

  /// Writes the state, or reads it.
  void serialize(Execution& npu, const std::vector<communicator::Membership>& memberships, Archive& archive);

  /// Returns what the blocks of the kernel of a node wait for, one line each.
  std::vector<std::string> waits(NodeId id) const;
  /// Returns the SMs that blocks hold.
  std::uint32_t sms() const { return sms_; }
  /// Returns what this NPU has sent, by peer.
  std::vector<gpu::RequestRecord> sent(NpuId self) const;

 private:
  class Kernel;
  struct Offer {
    network::Message message;
    std::vector<NpuId> copies;  ///< to which a switch hands it; empty: it goes to its destination
    std::uint32_t burst = 0, block = 0;
    gpu::Request request;
    bool has_left = false;  ///< it is through the ports of the GPU

    void serialize(Archive& archive) { archive(message, copies, burst, block, request, has_left); }
  };

  Kernel* find(GroupId group, std::uint32_t ordinal) const;
  std::uint32_t put(std::unique_ptr<Kernel> kernel);
  void take(const network::Message& message);
  bool leave(Offer& offer);
  void answer(const network::Message& asked);
  void offer(Time time, const gpu::Request& request, network::Message message, std::vector<NpuId> copies);
  void schedule(Time time, EventKind kind, std::uint32_t slot, std::uint64_t detail);
  void go_on(Kernel& kernel, bool is_joining);
  std::shared_ptr<const gpu::Program> program_of(NodeId id, const communicator::Membership& membership) const;
  void serialize_kernel(std::unique_ptr<Kernel>& kernel, const std::vector<communicator::Membership>& memberships,
                        Archive& archive);

  GpuSystem& system_;
  Execution* npu_ = nullptr;  // of the call in progress
  Time now_;
  std::vector<std::unique_ptr<Kernel>> kernels_;       // by slot; null: the slot is free
  std::map<GroupId, std::uint32_t> joined_;            // collectives of each group that this NPU has joined
  std::vector<network::Message> early_;                // words and packets of collectives that it has not joined
  std::map<Time, std::vector<Offer>> offers_;          // by the time when they are handed over
  std::map<std::int64_t, gpu::RequestCounts> counts_;  // by peer
  std::uint32_t sms_ = 0;
  gpu::Ports ports_;
  Slots<network::Message> coming_;  // through the ports
};

}  // namespace orrery::npu
