#pragma once

#include <vector>

#include "study_trials.hpp"

namespace orrery::study {

/// Prints why trials are refused, stuck, failed or timed out: for each reason how many have it, and one of them. Prints
/// nothing if there are none. At most five reasons are printed, the most frequent ones.
void print_faulty_trials(const StudyRun& run, const std::vector<Row>& rows);

}  // namespace orrery::study
