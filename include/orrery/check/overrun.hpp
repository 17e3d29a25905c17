#pragma once

#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// Throws Error (bad_input) on all ranks if an NPU of any rank left the range of time or of bytes during the run. Names
/// the node of the first one. Collective.
void require_no_overrun(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world);

}  // namespace orrery::check
