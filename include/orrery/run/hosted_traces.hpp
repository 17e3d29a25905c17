#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/partition/communication_graph.hpp"
#include "orrery/partition/partition.hpp"
#include "orrery/run/system.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::run {

/// An NPU that executes nothing by itself, and the rank that hosts it whatever the partition says.
using HostedNpu = std::pair<NpuId, Rank>;

/// Which rank hosts which NPU, and the traces of the NPUs that this rank hosts.
struct HostedTraces {
  partition::Partition partition;
  trace::Store store;
  std::vector<NpuId> npus;              ///< hosted NPUs whose traces could be read, ascending
  std::vector<trace::NpuTrace> traces;  ///< [npus]
  Notices notices;                      ///< notices of the traces that this rank has read
  bool groups_are_known = true;         ///< the communicator file has no faults
  std::vector<Time> delays = {};        ///< [npus of all ranks] in a folded run: how much later they begin; empty: none
};

/// Reads the communicator file, decides the partition and reads the traces. Where the strategy needs the traces, each
/// rank first reads those of a block of NPUs; the partition is computed from their summaries; then each rank keeps
/// those that it hosts and reads those that were on another rank. A generated workload is generated instead of read.
///
/// Faults of the files are added to `faults`; their traces are left out. If there are any, the partition is the default
/// one, as the run will be refused. Throws Error on all ranks for a rank map that cannot be used, and Error
/// (interrupted) when a signal has come. Collective. Cost O(bytes of the traces).
/// The partition of a folded run is the default one, as its strategy deals classes later. Rank 0 shows progress.
/// `fixed`: if there are any, NPUs without a job are idle, and the strategy must not need the traces.
HostedTraces read_hosted_traces(const config::Configuration& configuration, const System& system,
                                parallel::Communicator& world, Faults& faults, std::span<const HostedNpu> fixed = {});

/// Reads the traces of some NPUs that other ranks host, as these have read them. Leaves the notices as they are. Throws
/// the faults of the files (Faults::raise). Cost O(bytes of the traces).
std::vector<trace::NpuTrace> read_others(HostedTraces& traces, const config::Configuration& configuration,
                                         std::span<const NpuId> npus, Rank here);

/// Returns the partition that the configuration asks for, which rank 0 makes. Throws Error on all ranks for a rank map
/// that cannot be used. Collective.
partition::Partition make_partition(const HostedTraces& traces, const config::Configuration& configuration,
                                    const System& system, parallel::Communicator& world);

/// Returns who communicates with whom in the traces of all ranks. Collective.
partition::CommunicationGraph communication_graph(const HostedTraces& traces,
                                                  const config::Configuration& configuration, const System& system,
                                                  parallel::Communicator& world);

/// Returns where the node with this id of the trace of any NPU is, for messages. Reads the trace again if another rank
/// hosts the NPU.
Place place_of(const HostedTraces& traces, const config::Configuration& configuration, NpuId npu, std::uint64_t node);

}  // namespace orrery::run
