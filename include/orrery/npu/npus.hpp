#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/base/overrun.hpp"
#include "orrery/communicator/communicators.hpp"
#include "orrery/memory/local_memory.hpp"
#include "orrery/memory/memory_servers.hpp"
#include "orrery/network/analytical.hpp"
#include "orrery/network/model.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/npu/wait.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::npu {

/// What the NPUs of a rank call. All of it outlives them.
struct Services {
  pdes::Scheduler& kernel;
  network::Analytical& network;
  communicator::Communicators& communicators;
  memory::MemoryServers& memory_servers;
  network::MessageNetwork* links = nullptr;  ///< none but where links are simulated
};

/// The NPUs of a rank, each a logical process that executes its trace.
class Npus {
 public:
  /// An overrun goes to `overrun` if there is no earlier one.
  Npus(const RunContext& run, const Services& services, std::optional<Overrun>& overrun);
  ~Npus();

  /// Schedules what happens at time 0.
  void start();
  /// The run ends at `now` although NPUs are not done: their times count up to it.
  void stop(Time now);

  // See pdes::Model.
  void handle(const pdes::Event& event);
  void settle(Time now);
  bool admit(pdes::Event& event);
  pdes::Awaited awaits(NpuId npu) const;
  void proceed(NpuId npu);
  pdes::Horizon horizon();

  /// A node's collective is over at `time`, having sent `sent` bytes; its event has been scheduled.
  void announce(NpuId npu, NodeId node, Time time, Bytes sent);

  std::size_t num_done() const;
  /// Those for which others stand included. O(NPUs).
  std::uint64_t num_unfinished() const;
  std::uint64_t num_completed_nodes() const;  ///< O(NPUs)

  std::vector<NpuRecord> records() const;
  /// By NPU, start, node.
  std::vector<TimelineRecord> timeline() const;
  /// By NPU, then time.
  std::vector<memory::UsageRecord> usage_timeline() const;
  /// The earliest one of these NPUs, of equal ones that of the lowest NPU. O(NPUs).
  std::optional<memory::Excess> excess() const;
  /// What the unfinished NPUs wait for.
  std::vector<Wait> waits() const;

 private:
  struct State;

  std::uint32_t local(NpuId npu) const;
  void touch(std::uint32_t npu);

  std::unique_ptr<State> state_;
};

}  // namespace orrery::npu
