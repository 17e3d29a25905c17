#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"

namespace orrery::results {

/// One of several jobs that shared a system.
struct JobDescription {
  std::string name;
  std::vector<NpuId> npus;  ///< NPUs of the system, in the order of the job's own NPUs
  Time start;
  std::uint32_t iterations = 1;
  double tokens = 0;               ///< tokens of a step; 0: not known
  std::optional<Time> alone = {};  ///< from its start to its end, without the other jobs; none: it was not simulated
};

/// What became of a job. Times of its NPUs are means over them, from the start of the job to its end.
struct JobFigures {
  std::uint32_t npus = 0;
  Time start, finish;
  Time run_time;   ///< from the start to the end
  Time step_time;  ///< run_time over the iterations, nearest ps
  std::uint32_t iterations = 1;
  Time compute, cpu, exposed_communication, exposed_memory, idle;
  Bytes bytes_sent;              ///< bytes sent by all its NPUs
  double tokens_per_second = 0;  ///< 0: not known
  std::optional<Time> alone;     ///< run_time without the other jobs

  /// Returns run_time over `alone`; 1 if both are 0, and infinity if only `alone` is. There must be a time alone.
  double slowdown() const;
};

}  // namespace orrery::results
