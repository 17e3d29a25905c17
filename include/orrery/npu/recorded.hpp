#pragma once

#include <span>

#include "orrery/base/time.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::npu {

// With Options::recorded_communication, a collective or a message takes the shortest of the durations that its members
// recorded, from the moment when the last of them is ready: what the others recorded beyond that is waiting. Where a
// member recorded none, the network decides.

/// Returns the recorded duration of a collective, a send or a receive; zero if the network decides what it takes.
Time recorded_cost(const trace::Graph& graph, NodeId node, const Options& options);

/// Returns the shortest recorded duration of all ranks that decides, at least 2 ps; max() if there is none. Collective.
/// Cost O(nodes of the distinct programs).
Time least_recorded_cost(std::span<const NpuSpec> npus, const Options& options, parallel::Communicator& world);

/// Returns half of a time, which the clear to send of a recorded message takes: its data take at least as long again.
inline Time half_of(Time least_recorded) { return Time::from_ps(least_recorded.ps() / 2); }

}  // namespace orrery::npu
