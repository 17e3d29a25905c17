#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/cluster/options.hpp"

namespace orrery::cluster {

/// Draws the jobs of classes: Poisson arrivals whose classes, sizes and lengths depend on the seed and the number of
/// the job alone.
std::vector<Job> draw_jobs(const Arrivals& arrivals, std::uint64_t seed);

/// Returns the NPUs that jobs ask for on the mean, over those of the cluster.
double load_of(const Arrivals& arrivals, std::uint32_t num_npus);

/// The names of the columns of a trace.
struct TraceColumns {
  std::string name, arrival, npus, length, job_class;
  /// Whether the lines have no header and name a job, a label and a shape: J0,M,2,2,2.
  bool are_shapes = false;
};
/// Returns the columns of a preset: acme, philly, helios or cmu. Throws Error (bad_input) at `place`.
TraceColumns columns_of(std::string_view preset, const orrery::Place& place);

/// Jobs of a recorded trace.
struct Trace {
  std::vector<Job> jobs;
  std::vector<std::string> classes;  ///< classes in the order in which they occur
  std::uint64_t left_out = 0;        ///< rows of 0 NPUs
};
/// Reads a trace in CSV with a header. Times are seconds, or dates such as 2023-03-01 12:00:00; the first arrival is
/// time 0. Throws Error (bad_input) with the line.
Trace read_trace(std::string_view text, const std::string& file, const TraceColumns& columns);

}  // namespace orrery::cluster
