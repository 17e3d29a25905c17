#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/run/system.hpp"
#include "orrery/trace/store.hpp"
#include "trace_reader.hpp"

namespace orrery::run {

/// Says of which job each NPU of the system is.
class JobNpus {
 public:
  static constexpr std::int32_t no_job = -1;

  /// O(num_npus).
  JobNpus(std::span<const config::Job> jobs, std::uint32_t num_npus);

  /// Returns the number of the job, or no_job.
  std::int32_t job_of(NpuId npu) const { return job_[npu.index()]; }
  /// Returns which of the job's own NPUs an NPU with a job is.
  NpuId own(NpuId npu) const { return own_[npu.index()]; }
  /// Returns the NPUs of a job in the order of its own NPUs.
  std::span<const NpuId> npus_of(std::uint32_t job) const { return npus_[job]; }
  /// Says whether the job has all NPUs of the system under the numbers that they have there.
  bool is_whole(std::uint32_t job) const;

 private:
  std::vector<std::int32_t> job_;         // [num_npus]
  std::vector<NpuId> own_;                // [num_npus]
  std::vector<std::vector<NpuId>> npus_;  // [jobs]
};

/// Returns what a fault or a notice of a job says: it names the job, because the NPUs in it are the job's own.
std::string of_job(const config::Job& job, std::string_view text);

/// Reads or generates the traces of the jobs into one store, in which groups and peers are NPUs of the system. NPUs
/// without a job get traces without a node.
class JobTraces {
 public:
  /// Reads the communicator files of the jobs. What is wrong with them is added to `faults`.
  JobTraces(const config::Configuration& configuration, const System& system, Faults& faults);

  bool groups_are_known() const { return groups_are_known_; }
  const JobNpus& npus() const { return npus_; }

  /// Compares the names of the trace files with the NPUs of each job: see compare_trace_files.
  void compare_files(Faults& faults, Notices& notices) const;
  /// Returns [npus] the traces of these NPUs, which are those of a rank; none where a trace cannot be read. Notices go
  /// to `notices`.
  std::vector<std::optional<trace::NpuTrace>> read(std::span<const NpuId> npus, Rank here, trace::Store& store,
                                                   Faults& faults, Notices& notices) const;

 private:
  std::vector<std::optional<trace::NpuTrace>> read_job(std::uint32_t job, std::span<const NpuId> npus,
                                                       TraceReader& reader, trace::Store& store, Faults& faults,
                                                       Notices& notices) const;

  const config::Configuration& configuration_;
  const System& system_;
  JobNpus npus_;
  std::vector<trace::NamedGroups> groups_;  // [jobs] of their communicator files
  bool groups_are_known_ = true;
};

}  // namespace orrery::run
