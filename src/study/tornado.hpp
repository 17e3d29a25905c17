#pragma once

#include <vector>

#include "orrery/parallel/communicator.hpp"
#include "orrery/results/study.hpp"
#include "study_trials.hpp"

namespace orrery::study {

/// Returns what the first objective of the best trial becomes if one parameter has its lowest or its highest value, and
/// all else stays but what follows from it. Values that are not legal, or with which the trial is not done, are passed
/// over towards that of the best trial. Trials that nobody has simulated yet are simulated, at most eight for each end.
/// `rows`: [points], on rank 0. Returns bars on rank 0, none if no trial is done. Throws Error (interrupted) on all
/// ranks if a stop on request ended it. Collective.
std::vector<results::TornadoBar> tornado(const StudyRun& run, const std::vector<Row>& rows,
                                         parallel::Communicator& world);

}  // namespace orrery::study
