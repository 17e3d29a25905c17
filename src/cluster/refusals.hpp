#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "orrery/cluster/job.hpp"

namespace orrery::cluster {

/// Sizes and shapes of jobs that were refused in one state of a pool, so that equal ones need not be tried. Each call
/// takes O(1), or O(log shapes) for jobs with a shape.
class Refusals {
 public:
  void clear() {
    ++epoch_;
    shapes_.clear();
  }
  void add(const Job& job) {
    if (job.has_shape()) {
      shapes_.insert(job.shape);
      return;
    }
    if (epochs_.size() <= job.npus) epochs_.resize(job.npus + 1, 0);
    epochs_[job.npus] = epoch_;
  }
  bool contains(const Job& job) const {
    if (job.has_shape()) return shapes_.contains(job.shape);
    return job.npus < epochs_.size() && epochs_[job.npus] == epoch_;
  }

 private:
  std::uint64_t epoch_ = 1;
  std::vector<std::uint64_t> epochs_;  // [sizes] when one was refused last
  std::set<std::array<std::uint32_t, 3>> shapes_;
};

}  // namespace orrery::cluster
