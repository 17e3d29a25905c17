#pragma once

#include <memory>

#include "orrery/cluster/placement.hpp"

namespace orrery::cluster {

/// NPUs of which only the number counts.
class CountPool final : public Pool {
 public:
  CountPool(std::uint32_t num_npus, std::uint32_t num_free) : Pool(num_npus, num_free) {}

  bool fits(const Job& job) const override { return job.npus <= num_free_; }
  Place find(const Job& job, std::uint64_t) const override { return {job.npus, {}}; }
  void take(const Place& place) override { num_free_ -= place.count; }
  void release(const Place& place) override { num_free_ += place.count; }
  bool counts_only() const override { return true; }
  std::unique_ptr<Pool> copy() const override { return std::make_unique<CountPool>(*this); }
};

}  // namespace orrery::cluster
