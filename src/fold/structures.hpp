#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::fold {

/// What every rank knows of the structure of some NPUs.
struct Structure {
  using Collective = std::pair<collective::Kind, Bytes>;

  std::uint32_t num_nodes = 0;
  bool accesses_memory = false;
  std::vector<std::vector<Collective>> collectives;  ///< [uses] distinct, ascending; none in a replay
};

/// The structures of the NPUs of all ranks. NPUs of several ranks whose traces are equal have one structure.
struct Structures {
  std::vector<Structure> all;                              ///< the same on all ranks, by the first NPU that has it
  std::map<const npu::Program*, std::uint32_t> number_of;  ///< index into `all`, for the NPUs of this rank
};

/// Numbers the structures of all ranks. Graphs of two ranks are compared byte by byte where their digests are equal.
/// Rank r has lower NPUs than rank r + 1. Collective. O(bytes of the structures of this rank), and on the lowest rank
/// that has a structure those of all ranks that have it.
Structures number_structures(std::span<const npu::NpuSpec> npus, bool replay_only, parallel::Communicator& world);

}  // namespace orrery::fold
