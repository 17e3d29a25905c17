#pragma once

#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// Throws Error (bad_input) on all ranks if an NPU exceeded its local memory during the run. Reports the earliest
/// excess; of equal ones that of the lowest NPU. Collective.
void require_capacity(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world);

}  // namespace orrery::check
