#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/config/npu_list.hpp"

namespace orrery::config {

/// Which NPUs of a system a job takes.
struct Allocation {
  enum class Kind : std::uint8_t {
    contiguous,  ///< the first free NPUs that follow one another
    scattered,   ///< free NPUs that lie equally far apart among those that are free
    random,      ///< free NPUs that are drawn
    listed,      ///< those of a list or of a file
  };
  Kind kind = Kind::contiguous;
  std::vector<NpuRange> listed;
  std::uint32_t seed = 1;  ///< seed of the draw

  std::uint64_t num_listed() const;
};

/// A job that wants NPUs.
struct AllocationRequest {
  std::string job;
  std::uint32_t count = 1;  ///< the length of the list, if there is one
  Allocation how;
  Place place;
};

/// Returns the NPUs of each job. Lists go first; then each other job, in this order, takes what it finds free. What
/// cannot be had becomes a fault; then nothing is returned. Cost O(jobs * num_npus).
std::vector<std::vector<NpuRange>> allocate(std::span<const AllocationRequest> jobs, std::uint32_t num_npus,
                                            Faults& faults);

/// Reads a text that has an NPU, or a range of them, in each line; lines that are empty or begin with # do not count.
/// Throws Error (bad_input) with the line.
std::vector<NpuRange> parse_allocation(const std::string& text, const std::string& file, std::uint32_t num_npus);

}  // namespace orrery::config
