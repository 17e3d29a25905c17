#pragma once

#include <filesystem>
#include <map>
#include <vector>

#include "orrery/explore/space.hpp"
#include "trial.hpp"
#include "trial_journal.hpp"

namespace orrery::study {

/// Returns the trials in the files of all shards of a study, by number; those that a shard has ruled out are left to
/// the whole. Throws Error (bad_input) that names the file: one of another study or program, with what differs; a shard
/// that is missing or given twice; a trial that its shard lacks.
std::map<std::uint64_t, Trial> read_shards(const std::vector<std::filesystem::path>& files,
                                           const TrialJournal::Identity& identity, const explore::Points& points);

}  // namespace orrery::study
