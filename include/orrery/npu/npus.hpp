#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/communicator/member_side.hpp"
#include "orrery/gpu/record.hpp"
#include "orrery/memory/local_memory.hpp"
#include "orrery/memory/memory_servers.hpp"
#include "orrery/network/analytical.hpp"
#include "orrery/network/model.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/npu/resumed_from.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/npu/wait.hpp"
#include "orrery/pdes/carried_places.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::npu {

/// What the NPUs of a rank call. All of it outlives them.
struct Services {
  pdes::Scheduler& kernel;
  network::Analytical& network;
  communicator::MemberSide& communicators;
  memory::MemoryServers& memory_servers;
  network::MessageNetwork* links = nullptr;  ///< none but where links are simulated
  pdes::CarriedPlaces* places = nullptr;     ///< places of events between logical processes; null: none are known
};

/// The NPUs of a rank, each a logical process that executes its trace.
class Npus {
 public:
  /// An overrun goes to `overrun` if there is no earlier one.
  Npus(const RunContext& run, const Services& services, std::optional<Overrun>& overrun);
  ~Npus();

  /// Schedules what happens first on each NPU.
  void start();
  /// Ends the run at `now` although NPUs are not done: their times count up to it.
  void stop(Time now);

  // See pdes::Model.
  void handle(const pdes::Event& event);
  void settle(Time now);
  bool admit(pdes::Event& event);
  pdes::Awaited awaits(NpuId npu) const;
  void proceed(NpuId npu);
  pdes::LookaheadBounds lookahead();

  /// Takes note that the end of a node's collective has become known. Its event has been scheduled.
  void announce(const communicator::Completion& completion);

  /// Returns the number of NPUs here that have executed their traces.
  std::size_t num_done() const;
  /// Returns the number of NPUs that have not, those included that NPUs here represent. O(NPUs).
  std::uint64_t num_unfinished() const;
  std::uint64_t num_completed_nodes() const;  ///< O(NPUs)

  std::vector<NpuRecord> records() const;
  /// Returns the nodes of recorded iterations by NPU, start and node.
  std::vector<TimelineRecord> timeline() const;
  /// Returns the kernels of recorded iterations, in the order of their ends here.
  std::vector<gpu::KernelRecord> gpu_kernels() const;
  /// Returns what thread blocks have sent, by NPU, then peer.
  std::vector<gpu::RequestRecord> gpu_requests() const;
  /// Returns for each milestone of the traces when the last NPU here reached it. All traces with milestones have
  /// equally many.
  std::vector<Time> milestones() const;
  /// Returns the usage of local memories by NPU, then time.
  std::vector<memory::UsageRecord> usage_timeline() const;
  /// Returns the earliest excess of a local memory, of equal ones that of the lowest NPU. O(NPUs).
  std::optional<memory::Excess> excess() const;
  /// Returns what the unfinished NPUs wait for.
  std::vector<Wait> waits() const;

  /// Writes the state of an NPU, or reads it. `pending`: the events to come for it. `resumed_from`: the NPU whose state
  /// is read; null: the same NPU. MemberSide::resume must follow when all NPUs have been read.
  friend void serialize(Npus& npus, NpuId npu, Archive& archive, std::span<const pdes::Event> pending,
                        const ResumedFrom* resumed_from);
  /// See pdes::Model.
  friend pdes::LookaheadBound lookahead_of_cell(const Npus& npus, std::uint32_t cell);
  /// Lets GPUs keep from now on what checkpoints need. No time must have passed.
  friend void keep_history(Npus& npus);
  /// Writes what NPUs here have recorded together, or reads some and adds it.
  friend void serialize_sums(Npus& npus, Archive& archive);

 private:
  struct State;

  std::uint32_t local(NpuId npu) const;
  void touch(std::uint32_t npu);

  std::unique_ptr<State> state_;
};

void serialize(Npus& npus, NpuId npu, Archive& archive, std::span<const pdes::Event> pending,
               const ResumedFrom* resumed_from = nullptr);
pdes::LookaheadBound lookahead_of_cell(const Npus& npus, std::uint32_t cell);
void keep_history(Npus& npus);
void serialize_sums(Npus& npus, Archive& archive);

}  // namespace orrery::npu
