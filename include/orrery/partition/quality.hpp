#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "orrery/base/time.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/partition/communication_graph.hpp"
#include "orrery/partition/partition.hpp"

namespace orrery::partition {

/// How much of the communication crosses ranks, and how evenly work is spread.
struct Quality {
  std::uint64_t bytes = 0, total_bytes = 0;        ///< bytes of messages and collectives: between ranks, and in all
  std::uint64_t groups = 0, total_groups = 0;      ///< communicators
  std::uint64_t messages = 0, total_messages = 0;  ///< point to point
  double balance = 1;                              ///< largest load of a rank over the mean load
  std::optional<Time> lookahead;                   ///< least delay between ranks; none if nothing crosses them
};

/// Measures a partition. `run` is that of a single rank, which hosts all NPUs; `graph` is made of the same traces. Cost
/// O(NPUs + flows + members), and O(nodes) for each structure that has a collective between ranks.
Quality measure(const npu::RunContext& run, const CommunicationGraph& graph, const Partition& partition);

/// Returns the largest load of a rank over the mean; 1 if there is no load. `loads`: [num_npus].
double balance(std::span<const std::uint64_t> loads, const Partition& partition);

}  // namespace orrery::partition
