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
#include "thread_blocks.hpp"

namespace orrery::npu {

/// The collectives of an NPU that its thread blocks carry out (gpu::Device): each is a kernel. Blocks are resumed by
/// events of the NPU for itself. Their requests pass the links of the network as messages, and the owner of memory
/// answers, whether it has a kernel or not.
class GpuCollectives final : public ThreadBlocks {
 public:
  explicit GpuCollectives(GpuSystem& system);
  ~GpuCollectives() override;

  bool may_be_asked() const override { return true; }
  bool join(Execution& npu, NodeId id, GroupId group, const communicator::Membership& membership, Time now) override;
  void arrive(Execution& npu, const network::Message& message, Time now) override;
  void handle(Execution& npu, const pdes::Event& event) override;
  void settle(Execution& npu, Time now) override;
  void serialize(Execution& npu, const std::vector<communicator::Membership>& memberships, Archive& archive) override;
  std::vector<std::string> waits(NodeId id) const override;
  std::uint32_t sms() const override { return sms_; }
  std::vector<gpu::RequestRecord> sent(NpuId self) const override;

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
