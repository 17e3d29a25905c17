#pragma once

#include <string>

#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// Returns the report of a stuck run on rank 0: for the first unfinished NPUs, which node of which file waits since
/// when and for what, and what the user can do. Returns nothing on other ranks. Collective.
std::string report_stuck(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world);

/// Throws Error (stuck) on rank 0 if packets wait for credits of each other's links when no event is left. Collective.
void require_no_credit_circle(const model::RankModel& model, parallel::Communicator& world);

}  // namespace orrery::check
