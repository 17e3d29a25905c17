#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/overrun.hpp"
#include "orrery/base/slots.hpp"
#include "orrery/memory/memory_server.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/pdes/carried_places.hpp"
#include "orrery/pdes/scheduler.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::memory {

/// What a member says of the access that it does with others of a group, or what an NPU says of its own access if
/// requests are ordered.
struct GroupAccess {
  std::uint64_t node_id = 0;  ///< the trace's own, for messages
  Bytes size;
  GroupId group;
  std::uint32_t ordinal = 0;  ///< which of the group's accesses
  std::uint32_t members = 0;  ///< 0: the NPU does it alone
  trace::NodeKind kind = trace::NodeKind::mem_load;
  trace::CollectiveKind collective = trace::CollectiveKind::all_gather;
  AccessPlace place = {};  ///< `end` is known if the NPU awaits the begin

  void serialize(Archive& archive) { archive(node_id, size, group, ordinal, members, kind, collective, place); }
};

/// The kind of an event for an NPU whose access, of `node`, does not end at once (Requester::awaits_begin).
inline constexpr std::uint16_t access_goes_on = 64;

/// Gathers the accesses that the members of groups do together.
class GroupAccesses {
 public:
  using PlaceOf = std::function<Place(NpuId, std::uint64_t node)>;  ///< for messages
  using DescribeGroup = std::function<std::string(GroupId)>;        ///< likewise

  GroupAccesses(PlaceOf place_of, DescribeGroup describe_group)
      : place_of_(std::move(place_of)), describe_group_(std::move(describe_group)) {}

  /// Takes the request of a member. Returns all members, in the order in which they have asked, if this is the last
  /// one. Throws Error (bad_input) if the members disagree on the kind or the size of the access.
  std::optional<std::vector<Requester>> add(const GroupAccess& access, const Requester& member);

  /// Writes the accesses that some members have not asked for and for which `is_of` holds, or reads some and adds them.
  void serialize(Archive& archive, const std::function<bool(NpuId)>& is_of);

 private:
  /// An access that some members have not asked for.
  struct Gathered {
    GroupAccess first;
    std::vector<Requester> members;

    void serialize(Archive& archive) { archive(first, members); }
  };
  using Incomplete = std::map<std::pair<GroupId, std::uint32_t>, Gathered>;  // by group and ordinal

  void require_same(const Gathered& gathered, const GroupAccess& other, NpuId npu) const;

  PlaceOf place_of_;
  DescribeGroup describe_group_;
  Incomplete incomplete_;
};

/// The memory servers of one rank, each a logical process that answers requests of NPUs.
class MemoryServers {
 public:
  using PlaceOf = GroupAccesses::PlaceOf;
  using DescribeGroup = GroupAccesses::DescribeGroup;

  /// Takes an overrun to `overrun` if that holds no earlier one. `places` takes those of the ends of accesses, if it is
  /// not null. What is referred to must outlive it.
  MemoryServers(pdes::Scheduler& kernel, const RemoteMemory& memory, const Hosting& hosting, PlaceOf place_of,
                DescribeGroup describe_group, std::optional<Overrun>& overrun, pdes::CarriedPlaces* places = nullptr);

  /// Sends the request of an NPU that lives here to a server on rank `to`; `request.detail`: bytes.
  void ask(Rank to, pdes::Event request);
  /// Sends an NPU's part of an access of a group, or an access whose place among others counts, in the same way.
  void ask(Rank to, pdes::Event request, const GroupAccess& access);
  /// Keeps the access of a request that has come from another rank or a checkpoint: see pdes::Model::unpack.
  void unpack(pdes::Event& request, std::span<const std::byte> bytes);
  /// Returns the state that unpack needs of an event that waits for a server here, or nothing.
  std::vector<std::byte> pack(const pdes::Event& event) const;

  /// Handles an event for one of the servers here.
  void handle(const pdes::Event& event);

  /// Returns the servers here that have had a request, ascending. O(servers).
  std::vector<LpId> used() const;
  /// Writes the state of a server that is hosted here, or reads it.
  void serialize(LpId server, std::uint32_t number, Archive& archive);

  /// Returns the data that have passed the stages of a server that is hosted here; empty for servers without stages.
  std::vector<MemoryStageRecord> stages() const;

 private:
  struct Server {
    std::unique_ptr<SharedServer> memory;
    std::uint64_t sequence = 0;
  };

  Server& server(LpId lp);
  void serve(const pdes::Event& request);
  void serve_group(const pdes::Event& request);
  void begin(const pdes::Event& request, const ServerAccess& access);
  void close(const pdes::Event& event);
  void close_at(LpId lp, std::optional<Time> time);
  SharedServer::Answer answer_of(LpId lp);
  void answer(LpId lp, const Requester& requester, Time since, Time done, const EventPlace& place);

  pdes::Scheduler& kernel_;
  const RemoteMemory& memory_;
  Hosting hosting_;
  std::optional<Overrun>& overrun_;
  pdes::CarriedPlaces* places_;
  GroupAccesses groups_;
  std::map<LpId, Server> servers_;  // that have had a request
  Slots<GroupAccess> asked_;        // on their way; the events carry their slots
};

}  // namespace orrery::memory
