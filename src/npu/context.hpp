#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "kept_ends.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/hosting.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/npu/cause.hpp"
#include "orrery/npu/npus.hpp"
#include "orrery/npu/options.hpp"
#include "turns.hpp"

namespace orrery::npu {

class GpuSystem;

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
  KeptEnds& kept_ends;                ///< of the NPU that settles
  std::vector<Cause> cause_of_group;  ///< [communicators]
  DimensionStreams streams;
  Time least_recorded = Time::max();  ///< see RunContext
  Time last_step;                     ///< of a collective, from its last message to its end: an endpoint delay
  bool queues_take_turns = false;     ///< collective::Engine::queues_take_turns
  GpuSystem* gpus = nullptr;          ///< null: no thread blocks carry out collectives
  Scratch scratch = {};
};

}  // namespace orrery::npu
