#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"
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

/// The timeline of a run, an NPU at a time.
class Timeline {
 public:
  /// Throws Error (bad_input) that names the file: not there, no file of Orrery's, another version, no timeline, a
  /// table that is not whole.
  explicit Timeline(const std::filesystem::path& path);
  ~Timeline();

  std::uint32_t num_npus() const;
  /// Of one NPU, by start. TimelineRecord::name and group are for `name` and `group`. Cost O(its rows).
  std::vector<npu::TimelineRecord> rows(NpuId npu) const;
  /// What its tensors take of the local memory, by time; empty where that is not known. Cost O(its rows).
  std::vector<memory::UsageRecord> usage(NpuId npu) const;
  const std::string& name(std::uint32_t index) const;
  const std::string& group(std::uint32_t index) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Whether a file holds results of a run that was stopped on request; false if it holds none that can be read.
bool is_interrupted(const std::filesystem::path& path);

}  // namespace orrery::results
