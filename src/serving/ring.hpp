#pragma once

#include <cstdint>

#include "orrery/serving/step_options.hpp"

namespace orrery::serving {

/// Collectives of `ranks` on a ring of links that they have alone; results in us.
class Ring {
 public:
  Ring(std::uint32_t ranks, const StepOptions& options)
      : ranks_(ranks),
        bandwidth_(options.ring.bandwidth.bytes_per_ns() * 1e9),
        latency_us_(static_cast<double>(options.ring.latency.ps()) / 1e6) {}

  double all_reduce(double size) const { return ranks_ > 1 ? steps(2.0 * (ranks_ - 1), size / ranks_) : 0; }
  /// Every rank has `own` bytes and gets the bytes of the others.
  double all_gather(double own) const { return ranks_ > 1 ? steps(ranks_ - 1.0, own) : 0; }
  /// Returns the time in which a rank sends so many bytes, after one latency.
  double send(double size) const { return latency_us_ + size / bandwidth_ * 1e6; }

 private:
  double steps(double count, double size) const { return count * send(size); }

  std::uint32_t ranks_;
  double bandwidth_, latency_us_;
};

}  // namespace orrery::serving
