#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/device/hierarchical_pool.hpp"
#include "orrery/device/remote_memory.hpp"
#include "orrery/executor/executor.hpp"
#include "orrery/pdes/kernel.hpp"

namespace orrery::executor {

/// The memory servers of this rank, each a logical process that answers requests of NPUs.
class MemoryServers {
 public:
  /// An overrun goes to `overrun` if there is no earlier one.
  MemoryServers(pdes::Kernel& kernel, const Setting& setting, std::optional<Overrun>& overrun)
      : kernel_(kernel), setting_(setting), overrun_(overrun) {
    if (setting.memory.hierarchy()) pool_.emplace(*setting.memory.hierarchy());
  }

  /// An NPU's request. A hierarchical pool answers it when the moment is over (`close`).
  void serve(const pdes::Event& request);
  /// The pool has gathered what came at the moment before.
  void close(const pdes::Event& event);

 private:
  struct Server {
    device::MemoryServer memory;
    std::uint64_t sequence = 0;
  };
  /// An access to the hierarchical pool that has not been served.
  struct Waiting {
    Time since;
    NpuId npu;
    NodeId node;
    Bytes size;
  };

  void answer(LpId server, Time done, Time since, NpuId npu, NodeId node);

  pdes::Kernel& kernel_;
  const Setting& setting_;
  std::optional<Overrun>& overrun_;
  std::map<LpId, Server> servers_;
  std::optional<device::HierarchicalPool> pool_;
  std::vector<Waiting> waiting_;  // in the order of their times
  // Scratch, of the accesses of a moment.
  std::vector<device::HierarchicalPool::Access> accesses_;
  std::vector<NpuId> npus_;
  std::vector<Time> done_;
};

}  // namespace orrery::executor
