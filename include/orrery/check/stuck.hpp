#pragma once

#include <string>

#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::check {

/// The report of a stuck run: for the first unfinished NPUs, which node of which file waits since when for what; then
/// what to do. On rank 0; empty elsewhere. Collective.
std::string report_stuck(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world);

}  // namespace orrery::check
