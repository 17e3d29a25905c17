#pragma once

#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// Every node of this rank's NPUs fits the range of time and of bytes by itself. Throws Error (bad_input) that names
/// the first one that does not. O(nodes of distinct programs + peers), and a plan of each distinct collective, which
/// the engine keeps.
void check_ranges(const npu::RunContext& run, const trace::Store& store);

/// No NPU of any rank left the range of time or of bytes in the run. Throws Error (bad_input) that names the first
/// one's node. Collective.
void require_no_overrun(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world);

}  // namespace orrery::check
