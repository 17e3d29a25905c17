#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "orrery/results/results.hpp"

namespace orrery::results {

/// How a run went: /kernel of its results (docs/results.md).
struct KernelTable {
  std::string status;               ///< "complete", ...
  double wall_time = 0;             ///< s
  std::vector<KernelRecord> ranks;  ///< [num_ranks], at least one
};

/// Throws Error (bad_input) that names the file: not there, no file of Orrery's, another version, a table that is not
/// whole.
KernelTable read_kernel(const std::filesystem::path& path);

/// Whether a file holds results of a run that was stopped on request; false if it holds none that can be read.
bool is_interrupted(const std::filesystem::path& path);

}  // namespace orrery::results
