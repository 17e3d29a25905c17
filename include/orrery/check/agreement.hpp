#pragma once

#include "orrery/base/faults.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// What the agreement checks look at.
struct Parties {
  const trace::Store& store;
  std::span<const npu::NpuSpec> npus;
  std::span<const communicator::CommunicatorSpec> communicators;
  std::span<const Rank> host_of_npu;
  std::span<const char> is_read;  ///< [num_npus] what an NPU does whose trace could not be read is not known
};

/// Every send has its receive and the reverse, and both sides together mean the same sizes. A fault for each pair of
/// NPUs and tag that differ, with a node, on the rank of that node. Collective; O(messages) and one exchange.
void check_messages(const Parties& parties, parallel::Communicator& world, Faults& faults);

/// Members of a group do the same collectives: kinds, sizes and counts, and the order if dependencies fix it so that
/// no order suits all (else the run compares what really happens). On rank 0 a fault for each way in which a member of
/// a group differs from the first one, with their first different nodes. Collective; O(nodes) per structure and one
/// exchange; a member's graph goes to rank 0 if its nodes are in another order than those of the first member.
void check_collectives(const Parties& parties, parallel::Communicator& world, Faults& faults);

}  // namespace orrery::check
