#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "orrery/pdes/load_record.hpp"
#include "orrery/results/results.hpp"

namespace orrery::results {

/// A load is kept by so many blocks of NPUs at most, which are ranks if there are as many.
inline constexpr std::uint32_t most_load_blocks = 1024;

/// A load as a file of results holds it, and what else of the run a prediction needs.
struct LoadTable {
  Load load;
  std::uint64_t events = 0;  ///< events of the run
  double busy_time = 0;      ///< s, of all ranks of the run
  int num_ranks = 1;         ///< ranks of the run
  std::string status;        ///< status of the run: "complete", ...
};

/// Reads /load. Throws Error (bad_input) that names the file: it does not exist, Orrery did not write it, it has
/// another version, the run did not record its load, or the table is not whole.
LoadTable read_load(const std::filesystem::path& path);

}  // namespace orrery::results
