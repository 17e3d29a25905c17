#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/partition/partition.hpp"

namespace orrery::partition {

/// What all messages from one NPU to another come to.
struct Flow {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
};

/// What all collectives of one communicator come to.
struct GroupTraffic {
  std::vector<NpuId> members;     ///< all NPUs are listed for the world
  std::uint64_t bytes = 0;        ///< that all members bring, over all collectives
  std::uint64_t collectives = 0;  ///< nodes of all members
};

/// Who talks to whom in the traces: the graph that is cut.
struct Conversation {
  std::vector<std::uint64_t> loads;  ///< [num_npus] nodes of the trace
  std::vector<Flow> flows;           ///< by sender, then receiver, each pair once
  std::vector<GroupTraffic> groups;  ///< by communicator
};

/// Empty but for the loads with replay_only: nothing is then said. Collective; whole on every rank.
/// O(nodes) per structure + O(peers + groups) per NPU.
Conversation converse(const npu::RunContext& run, parallel::Communicator& world);

/// NPUs dealt to ranks by METIS: loads balanced, few bytes between ranks. Edges are flows, and for a communicator the
/// ring of its members. The same for the same input; with a rank for each NPU or more, and where nobody talks, blocks.
/// Source: Karypis and Kumar, A fast and high quality multilevel scheme for partitioning irregular graphs, SIAM J. Sci.
/// Comput. 20 (1998). O(edges).
Partition cut(const Conversation& conversation, int num_ranks);

/// What a partition is worth.
struct Cut {
  std::uint64_t bytes = 0, total_bytes = 0;
  std::uint64_t groups = 0, total_groups = 0;      ///< communicators
  std::uint64_t messages = 0, total_messages = 0;  ///< point to point
  double balance = 1;                              ///< largest load over mean load
  std::optional<Time> lookahead;                   ///< least delay across the cut; none if nothing crosses it
};

/// `run` is of a single rank. O(NPUs + flows + members).
Cut measure(const npu::RunContext& run, const Conversation& conversation, const Partition& partition);

/// The largest load of a rank over the mean; 1 without any load.
double balance(std::span<const std::uint64_t> loads, const Partition& partition);

}  // namespace orrery::partition
