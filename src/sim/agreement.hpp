#pragma once

#include "orrery/executor/executor.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::sim {

/// What the agreement checks look at.
struct Parties {
  const trace::Store& store;
  std::span<const executor::NpuSpec> npus;
  std::span<const executor::CommunicatorSpec> communicators;
  std::span<const Rank> host_of_npu;
};

/// Every send has its receive and the reverse, and both sides together mean the same sizes. Throws Error (bad_input)
/// that names a node, on ranks where one is at fault. Collective; O(messages) and one exchange.
void check_messages(const Parties& parties, parallel::Communicator& world);

/// Members of a group do the same collectives. Kinds, sizes and counts are compared; the order where dependencies fix
/// it (where they do not, the run compares what really happens). Throws Error (bad_input) on rank 0 that names two
/// members and their first different nodes. Collective; O(nodes x groups) per structure and one exchange.
void check_collectives(const Parties& parties, parallel::Communicator& world);

}  // namespace orrery::sim
