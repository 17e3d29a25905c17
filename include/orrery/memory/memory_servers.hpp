#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/hosting.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/memory/hierarchical_pool.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::memory {

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
  using PlaceOf = std::function<Place(NpuId, std::uint64_t node)>;  ///< for messages
  using DescribeGroup = std::function<std::string(GroupId)>;        ///< likewise

  /// An overrun goes to `overrun` if there is no earlier one.
  MemoryServers(pdes::Scheduler& kernel, const RemoteMemory& memory, const Hosting& hosting, PlaceOf place_of,
                DescribeGroup describe_group, std::optional<Overrun>& overrun);

  /// An NPU that lives here asks a server on rank `to`; `request.detail`: bytes.
  void ask(Rank to, pdes::Event request);
  /// The same for its part of an access of a group.
  void ask(Rank to, pdes::Event request, const GroupAccess& access);
  /// The same has come from another rank: see pdes::Model::unpack.
  void unpack(pdes::Event& request, std::span<const std::byte> bytes);

  /// An event for one of the servers here.
  void handle(const pdes::Event& event);

  /// Of a hierarchical pool that is hosted here; else none.
  std::vector<MemoryStageRecord> stages() const;

 private:
  /// An NPU's request for itself. A hierarchical pool answers it when the moment is over.
  void serve(const pdes::Event& request);
  /// Likewise of a group: when its last member has asked.
  void serve_group(const pdes::Event& request);
  /// The moment before is over.
  void close(const pdes::Event& event);

  struct Server {
    MemoryServer memory;
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
    PathCollective collective = PathCollective::none;
    std::size_t count = 1;  ///< of askers
  };

  void begin(const pdes::Event& request, Bytes size, PathCollective collective, std::span<const Asker> askers);
  void require_same(const Gathering& gathering, const GroupAccess& other, NpuId npu) const;
  void answer(LpId server, Time done, Time since, const Asker& asker);
  std::uint64_t put(const GroupAccess& access);

  pdes::Scheduler& kernel_;
  const RemoteMemory& memory_;
  Hosting hosting_;
  PlaceOf place_of_;
  DescribeGroup describe_group_;
  std::optional<Overrun>& overrun_;
  std::map<LpId, Server> servers_;
  std::optional<HierarchicalPool> pool_;
  std::vector<GroupAccess> asked_;                                    // on their way, by the event's `detail`
  std::vector<std::uint64_t> free_;                                   // places in asked_
  std::map<std::pair<GroupId, std::uint32_t>, Gathering> gathering_;  // by group and ordinal
  std::vector<Waiting> waiting_;                                      // in the order of their times
  std::vector<Asker> askers_;                                         // of waiting_, one after the other
  // Scratch, of the accesses of a moment.
  std::vector<HierarchicalPool::Access> accesses_;
  std::vector<NpuId> npus_;
  std::vector<Time> done_;
};

}  // namespace orrery::memory
