#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/device/hierarchical_pool.hpp"
#include "orrery/device/remote_memory.hpp"
#include "orrery/executor/executor.hpp"
#include "orrery/executor/record.hpp"
#include "orrery/pdes/kernel.hpp"

namespace orrery::executor {

/// What a member says of the access that it does with others of a group.
struct GroupAccess {
  std::uint64_t node_id = 0;  ///< the trace's own, for messages
  Bytes size;
  GroupId group;
  std::uint32_t ordinal = 0;  ///< which of the group's accesses
  std::uint32_t members = 0;
  trace::NodeKind kind = trace::NodeKind::mem_load;
  trace::CollectiveKind collective = trace::CollectiveKind::all_gather;
};

/// The memory servers of this rank, each a logical process that answers requests of NPUs.
class MemoryServers {
 public:
  /// An overrun goes to `overrun` if there is no earlier one.
  MemoryServers(pdes::Kernel& kernel, const Setting& setting, Rank here, std::optional<Overrun>& overrun)
      : kernel_(kernel), setting_(setting), here_(here), overrun_(overrun) {
    if (setting.memory.hierarchy()) pool_.emplace(*setting.memory.hierarchy());
  }

  /// An NPU that lives here asks a server on rank `to` for its part of an access of a group.
  void ask(Rank to, pdes::Event request, const GroupAccess& access);
  /// The same has come from another rank: see pdes::Model::unpack.
  void unpack(pdes::Event& request, std::span<const std::byte> bytes);

  /// An NPU's request for itself. A hierarchical pool answers it when the moment is over.
  void serve(const pdes::Event& request);
  /// Likewise of a group: when its last member has asked.
  void serve_group(const pdes::Event& request);
  /// The moment before is over.
  void close(const pdes::Event& event);

  /// Of a hierarchical pool that is hosted here; else none.
  std::vector<MemoryStageRecord> stages() const;

 private:
  struct Server {
    device::MemoryServer memory;
    std::uint64_t sequence = 0;
  };
  struct Asker {
    NpuId npu;
    NodeId node;
  };
  /// An access of a group that some members have not asked for.
  struct Gathering {
    GroupAccess first;
    std::vector<Asker> askers;
  };
  /// An access to the hierarchical pool that begins.
  struct Waiting {
    Time since;
    Bytes size;
    device::PathCollective collective = device::PathCollective::none;
    std::size_t count = 1;  ///< of askers
  };

  void begin(const pdes::Event& request, Bytes size, device::PathCollective collective, std::span<const Asker> askers);
  void require_same(const Gathering& gathering, const GroupAccess& other, NpuId npu) const;
  void answer(LpId server, Time done, Time since, const Asker& asker);
  std::uint64_t put(const GroupAccess& access);

  pdes::Kernel& kernel_;
  const Setting& setting_;
  Rank here_;
  std::optional<Overrun>& overrun_;
  std::map<LpId, Server> servers_;
  std::optional<device::HierarchicalPool> pool_;
  std::vector<GroupAccess> asked_;                                    // on their way, by the event's `detail`
  std::vector<std::uint64_t> free_;                                   // places in asked_
  std::map<std::pair<GroupId, std::uint32_t>, Gathering> gathering_;  // by group and ordinal
  std::vector<Waiting> waiting_;                                      // in the order of their times
  std::vector<Asker> askers_;                                         // of waiting_, one after the other
  // Scratch, of the accesses of a moment.
  std::vector<device::HierarchicalPool::Access> accesses_;
  std::vector<NpuId> npus_;
  std::vector<Time> done_;
};

}  // namespace orrery::executor
