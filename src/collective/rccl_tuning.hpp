#pragma once

#include "orrery/collective/library.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::collective {

/// Returns which algorithm and protocol RCCL's tuning model takes for a collective on nodes of MI300X, as nccl_choice
/// does; it does not say how many channels. Source: ROCm/rccl at 9e22c79d, src/graph/tuning.cc (tuning_model_5, of
/// gfx942) and topo.h. O(algorithms).
std::optional<LibraryChoice> rccl_choice(Kind kind, const LibraryGroup& group, double bytes);

}  // namespace orrery::collective
