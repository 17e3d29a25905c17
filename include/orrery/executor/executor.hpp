#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/device/remote_memory.hpp"
#include "orrery/executor/folded.hpp"
#include "orrery/executor/lifetimes.hpp"
#include "orrery/executor/options.hpp"
#include "orrery/executor/program.hpp"
#include "orrery/executor/record.hpp"
#include "orrery/network/analytical.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/kernel.hpp"
#include "orrery/pdes/model.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::executor {

/// A process group of the run as a communicator. Its LP id is num_npus + GroupId.
struct CommunicatorSpec {
  GroupId id;
  const trace::Group* group = nullptr;  ///< empty members = the world
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;  ///< of collective::Engine::layout, as the dimensions
  Rank host;
  const Seating* seating = nullptr;  ///< of a folded run; else every member joins for itself
};

/// Ascending: the ranks of those who join a communicator. O(members).
std::vector<Rank> ranks_of(const CommunicatorSpec& spec, std::span<const Rank> host_of_npu);

/// One NPU of this rank.
struct NpuSpec {
  NpuId id;
  const trace::NpuTrace* trace = nullptr;
  const Program* program = nullptr;
  std::vector<GroupId> groups;        ///< [program uses] the communicators of its collectives
  const FoldedNpu* folded = nullptr;  ///< of a folded run; else it stands for itself
  std::uint64_t count() const { return folded ? folded->count : 1; }
};

/// What the executor of a rank works with; all of it outlives the executor.
struct Setting {
  const Options& options;
  const topology::Topology& topology;
  const device::RemoteMemory& memory;
  collective::Engine& engine;
  std::span<const CommunicatorSpec> communicators;  ///< [num_groups], alike on all ranks
  std::span<const NpuSpec> npus;                    ///< of this rank, ascending
  std::span<const Rank> host_of_npu;                ///< [num_npus]
  std::span<const Rank> host_of_server;             ///< [num_servers]
  /// Where the node with this id of the trace is, of any NPU: for messages. May read the trace of another rank's NPU.
  std::function<Place(NpuId, std::uint64_t node)> place_of;
};

/// Something that an unfinished NPU waits for.
struct Wait {
  NpuId npu;
  NodeId node;
  Time since;
  NpuId partner;  ///< of a send or a receive
  std::uint64_t tag = 0;
  Bytes size;
  bool in_collective = false;
  bool is_access = false;  ///< to memory: of a group, then `in_collective` too
  GroupId group;
  std::uint32_t ordinal = 0;
  std::uint32_t members = 0;
};

/// A node with which an NPU leaves the range of time, so that it never completes, or a count of bytes its range.
struct Overrun {
  enum class Quantity : std::uint32_t { time, bytes_sent, peak_memory };

  Time since;  ///< the node's start
  NpuId npu;
  NodeId node;
  Quantity quantity = Quantity::time;

  friend auto operator<=>(const Overrun&, const Overrun&) = default;
};

/// The first moment of some length at which the tensors of an NPU exceed its local memory.
struct Excess {
  Time since;
  NpuId npu;
  Bytes usage;
  Residents tensors = {};  ///< that are there then
};

/// All logical processes of one rank: its NPUs, the communicators and memory servers that it hosts.
/// LP ids: NPUs, then communicators, then memory servers, then the links of the congestion-aware network.
class Executor final : public pdes::Model {
 public:
  explicit Executor(const Setting& setting);
  ~Executor() override;

  /// Delays between this rank's LPs and those of the others, for the kernel; collective.
  pdes::Options kernel_options(parallel::Communicator& world) const;
  /// Schedules what happens at time 0.
  void start(pdes::Kernel& kernel, Rank here);

  /// The run ends at `now` although NPUs are not done: their times count up to it.
  void stop(Time now);

  void handle(const pdes::Event& event) override;
  void settle(Time now) override;
  bool admit(pdes::Event& event) override;
  void unpack(pdes::Event& event, std::span<const std::byte> bytes) override;
  pdes::Awaited awaits(LpId npu) const override;
  void proceed(LpId npu) override;
  void receive(Rank from, std::span<const std::byte> message) override;
  pdes::Horizon horizon() override;
  Time pending_reply(Rank to) const override;
  std::string status() const override;

  std::size_t num_npus() const;
  std::size_t num_done() const { return num_done_; }
  /// Those for which others stand included. O(NPUs).
  std::uint64_t num_unfinished() const;
  std::uint64_t num_completed_nodes() const;  ///< O(NPUs)
  const network::Analytical& network() const { return network_; }

  /// Of this rank's links that carried anything; none but in the congestion-aware network.
  std::vector<LinkRecord> link_records() const;
  /// Of a hierarchical pool, on the rank that hosts it; else none.
  std::vector<MemoryStageRecord> memory_stages() const;
  std::vector<NpuRecord> npu_records() const;
  /// Of the first Options::record_iterations iterations, as the timeline.
  std::vector<CollectiveRecord> collective_records() const;
  /// Of all iterations that are over, folded ones included; the sum over ranks counts each once. By kind, then members.
  std::vector<CollectiveSum> collective_sums() const;
  /// By NPU, start, node.
  std::vector<TimelineRecord> timeline() const;

  /// By NPU, then time.
  std::vector<UsageRecord> usage_timeline() const;
  /// The earliest one of this rank's NPUs, of equal ones that of the lowest NPU. O(NPUs).
  std::optional<Excess> excess() const;

  /// The earliest one that was met on this rank, be it of another rank's NPU.
  const std::optional<Overrun>& overrun() const { return overrun_; }

  /// What the unfinished NPUs of this rank wait for.
  std::vector<Wait> waits() const;
  /// Members of this rank that have not joined a collective, or an access, of a group.
  std::vector<NpuId> not_joined(GroupId group, std::uint32_t ordinal, bool is_access) const;

 private:
  struct Parts;

  std::uint32_t local(NpuId npu) const;
  void touch(std::uint32_t npu);

  Setting setting_;
  network::Analytical network_;
  std::unique_ptr<const network::Fabric> fabric_;  ///< none but in the congestion-aware network
  std::optional<Overrun> overrun_;
  std::unique_ptr<Parts> parts_;
  std::size_t num_done_ = 0;
};

}  // namespace orrery::executor
