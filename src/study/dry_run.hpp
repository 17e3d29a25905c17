#pragma once

#include "orrery/explore/space.hpp"
#include "orrery/parallel/communicator.hpp"
#include "study_trials.hpp"

namespace orrery::study {

/// Returns the constraint on a metric that a bound breaks; null if there is none.
const explore::Expression* broken_limit(const explore::Study& study, const explore::Point& point,
                                        const TrialEstimate& estimate);

/// Says whether a study names a metric that follows from FLOPs.
bool needs_flops(const explore::Study& study);

/// Prints the bounds of all points on rank 0, and how many fall to what. Collective.
void dry_run(const explore::Study& study, const ExploreCommand& command, const explore::Points& points,
             const explore::Funnel& funnel, parallel::Communicator& world);

}  // namespace orrery::study
