#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "orrery/base/error.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/network/model.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/topology/circuits.hpp"

namespace orrery::npu {

/// What the logical processes of a rank work with; all of it outlives them.
struct RunContext {
  /// What holds for the traces of all ranks together.
  struct AllTraces {
    Time least_recorded = Time::max();  ///< least_recorded_cost
    bool accesses_servers = false;      ///< an NPU accesses a memory server
    bool sends_messages = false;        ///< an NPU sends one outside of collectives
    /// [num_npus] positions_among_connected, if places of events are known because of messages alone; else empty. They
    /// order the first events of NPUs instead of their ids, so that one NPU can stand for others that are connected
    /// alike.
    std::span<const std::uint32_t> positions = {};
    bool turns_go_on = false;  ///< turns_go_on_over_all
  };

  const Options& options;
  const network::DelayModel& delays;
  const memory::RemoteMemory& memory;
  collective::Engine& engine;
  std::span<const communicator::CommunicatorSpec> communicators;  ///< [num_groups], alike on all ranks
  std::span<const NpuSpec> npus;                                  ///< NPUs of this rank, ascending
  Hosting hosting;
  /// Says where the node with this id of the trace of any NPU is, for errors. May read the trace of another rank's NPU.
  std::function<Place(NpuId, std::uint64_t node)> place_of;
  AllTraces of_all = {};
  std::uint32_t cell_size = 0;                       ///< most NPUs in a cell; 0: as many as fit most caches
  const network::SimulatedNetwork* links = nullptr;  ///< none but where links are simulated
  std::span<const std::uint32_t> cell_of = {};       ///< [num_npus] in which cell links keep messages; empty: in one

  const topology::Topology& topology() const { return delays.topology(); }
  /// Returns the delay of a send, which takes the first configuration of circuits.
  Time send_delay(NpuId from, NpuId to, Bytes size) const {
    const topology::Circuits* const circuits = options.network.circuits.get();
    return delays.delay(position_of(circuits, 0, from), position_of(circuits, 0, to), size);
  }
  /// Says whether places of events are known, because the order of simultaneous events matters beyond an NPU.
  bool knows_places() const {
    return options.one_by_one && !options.replay_only &&
           (options.goes_over_links() || orders_requests() || of_all.sends_messages);
  }
  /// Says whether a communicator's host orders the messages of its collectives, so that requests to a memory that NPUs
  /// share come in their order.
  bool orders_collectives() const { return knows_places() && orders_requests() && !options.goes_over_links(); }
  bool orders_requests() const {
    return of_all.accesses_servers && memory.orders_requests() && !memory.kind()->has_hierarchy;
  }

  // Ids of logical processes: NPUs, then communicators, then memory servers, then the links of the congestion-aware
  // network.
  LpId first_communicator() const { return LpId(hosting.num_npus()); }
  LpId first_server() const {
    return LpId(first_communicator().value() + static_cast<std::uint32_t>(communicators.size()));
  }
  LpId first_link() const { return LpId(first_server().value() + memory.num_servers()); }
};

}  // namespace orrery::npu
