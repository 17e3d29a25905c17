#pragma once

#include <vector>

#include "orrery/parallel/communicator.hpp"
#include "study_trials.hpp"

namespace orrery::study {

/// Says whether a job writes the CONFIG.yaml of each trial that it lists beside its output: where it is told to, and
/// where --trial cannot find the trials again, because they follow from results.
bool writes_configurations(const explore::Study& study, const ExploreCommand& command);

/// Checks that the files of a job can be written, on rank 0. Throws Error: output if a file exists or cannot be made,
/// usage for outputs that are one file or an input.
void check_study_outputs(const explore::Study& study, const ExploreCommand& command);
/// Simulates listed trials again, each on one rank, and keeps their results. Collective.
void keep_results(const StudyRun& run, const std::vector<Row>& rows, parallel::Communicator& world);
/// Writes the configurations of the trials that are listed beside the output, on rank 0.
void write_configurations(const StudyRun& run, const std::vector<Row>& rows);
/// Removes files of trials that a run of before has left beside the output, on rank 0. Call it when the results are
/// written, so that a job that fails loses nothing.
void remove_older_trials(const StudyRun& run, const std::vector<Row>& rows);

}  // namespace orrery::study
