#pragma once

#include <optional>
#include <span>

#include "orrery/communicator/record.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/model/resumed_state.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/run/preparation.hpp"

namespace orrery::run {

/// Folds NPUs again after a simulation with these divergences, which are those of all ranks, and returns the state from
/// which the run goes on: that at the last moment before the divergences, in which members of a class are still alike
/// (docs/folding.md, *Splitting*). To find it, the simulation is made again up to there, from `from` or from time 0.
/// Returns nothing where the run has to begin again from time 0. Collective.
std::optional<model::ResumedState> split_classes(Preparation& preparation,
                                                 std::span<const communicator::Divergence> divergences,
                                                 const model::ResumedState* from, const config::RunOptions& options,
                                                 parallel::Communicator& world);

}  // namespace orrery::run
