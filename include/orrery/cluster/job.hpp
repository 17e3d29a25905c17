#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/campaign/spread.hpp"

namespace orrery::cluster {

using campaign::Nanoseconds;

/// A job as users submit it.
struct Job {
  std::string name;
  Nanoseconds arrival = 0;
  std::uint32_t npus = 1;
  std::array<std::uint32_t, 3> shape{};  ///< sides of a block of a torus; 0: the job has none
  Nanoseconds length = 0;                ///< alone, on a packed placement
  Nanoseconds estimate = 0;              ///< run time that the user asked for
  std::uint32_t job_class = 0;           ///< number of its class
  std::uint32_t priority = 0;            ///< 0 is the highest
  double share = 0;                      ///< part of the job's time alone in which it keeps a shared link busy
  double power = 0;                      ///< W of an NPU with the job; 0: Site::running

  bool has_shape() const { return shape[0] > 0; }
  friend bool operator==(const Job&, const Job&) = default;
};

/// What became of a job.
struct JobResult {
  Nanoseconds start = -1;  ///< the first one; -1: the job was rejected
  Nanoseconds end = -1;
  Nanoseconds occupied = 0;  ///< time for which it had NPUs, over all its starts
  double lost = 0;           ///< NPU-seconds of work that was done again
  double useless = 0;        ///< NPU-seconds of restarts and lost work
  double energy = 0;         ///< J of its NPUs while it had them
  std::uint32_t stops = 0;
  std::uint32_t npus = 0;    ///< NPUs that the job had: whole hosts
  std::uint32_t leaves = 0;  ///< on which it began the last time

  bool is_rejected() const { return start < 0; }
};

}  // namespace orrery::cluster
