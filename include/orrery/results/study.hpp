#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "orrery/parallel/communicator.hpp"

namespace orrery::results {

/// A column of numbers of a study's trials.
struct StudyColumn {
  std::string name, units, description;
  std::vector<double> values;  ///< [trials]; NaN: not known
};

/// What a study found, as explore.h5 holds it (docs/exploration.md).
struct StudyTable {
  std::string command_line;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< names and texts: STUDY.yaml, CONFIG.yaml
  std::vector<std::uint64_t> number;                        ///< [trials] among the legal points
  std::vector<std::string> status, error;                   ///< [trials]
  std::vector<StudyColumn> metrics;
  std::vector<std::pair<std::string, std::vector<std::string>>> parameters;  ///< names and texts: [trials]
  std::vector<std::uint64_t> extra;  ///< numbers that were simulated although their bounds rule them out
  std::vector<std::uint64_t> best;   ///< numbers: the top, the best one first, or the Pareto front
  std::vector<std::pair<std::string, std::uint64_t>> funnel;  ///< reasons, and how many points fell to them
};

/// Writes the file on rank 0, as `write` does. Returns the name that it has got there. Collective. Throws Error
/// (output) on all ranks if rank 0 cannot write.
std::filesystem::path write_study(const std::filesystem::path& path, const StudyTable& study, bool force,
                                  parallel::Communicator& world);

}  // namespace orrery::results
