#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kept_ends.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/npu/cause.hpp"
#include "orrery/npu/npus.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/npu/run_context.hpp"
#include "turns.hpp"

namespace orrery::npu {

class GpuSystem;

/// What a group of NPUs is for.
struct GroupUse {
  Cause cause = Cause::other;
  std::uint32_t circuits = 0;  ///< configuration of the circuits in which its collectives run
};

/// What the NPUs of a rank share and call.
struct Context {
  /// Lists that are empty between calls; one for all NPUs saves memory.
  struct Scratch {
    std::vector<std::uint32_t> released;
    std::vector<NodeId> over;
  };

  Services services;
  const memory::RemoteMemory& memory;
  const Options& options;
  Hosting hosting;
  LpId first_server;  ///< LP of memory server 0
  const std::function<Place(NpuId, std::uint64_t node)>& place_of;
  KeptEnds& kept_ends;           ///< ends of the NPU that settles
  std::vector<GroupUse> groups;  ///< [communicators]
  DimensionStreams streams;
  const RunContext::AllTraces& of_all;
  Time endpoint_delay[2];  ///< delays in collectives among all NPUs, and in smaller communicators
  /// Queues of each dimension if an NPU's turn of queues and trees goes on over all its communicators; 0 if it does
  /// not.
  std::uint32_t queues = 0;
  Time fraction = {};         ///< part of a ns by which the kernel is past the time of the NPU that settles
  GpuSystem* gpus = nullptr;  ///< null: no thread blocks carry out collectives
  Scratch scratch = {};

  /// Returns what passes from the last message of a collective to its end.
  Time last_step(const communicator::Membership& its) const { return endpoint_delay[its.is_subgroup ? 1 : 0]; }
};

}  // namespace orrery::npu
