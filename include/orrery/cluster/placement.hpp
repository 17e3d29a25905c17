#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "orrery/cluster/job.hpp"
#include "orrery/cluster/options.hpp"

namespace orrery::cluster {

/// NPUs of a job.
struct Place {
  std::uint32_t count = 0;
  std::vector<std::uint32_t> npus;  ///< places in the order of the job's own NPUs; empty where only the number counts
};

/// The free NPUs of a cluster under one placement policy (docs/cluster-time.md, P1 to P5).
class Pool {
 public:
  virtual ~Pool() = default;

  std::uint32_t num_npus() const { return num_npus_; }
  std::uint32_t num_free() const { return num_free_; }

  /// Returns whether the policy finds NPUs for a job.
  virtual bool fits(const Job& job) const = 0;
  /// Returns NPUs for a job that fits, without taking them. `number`: of the job, the key of draws.
  virtual Place find(const Job& job, std::uint64_t number) const = 0;
  virtual void take(const Place& place) = 0;
  virtual void release(const Place& place) = 0;
  /// Returns a pool that answers `fits` as this one does, also after its own `take` and `release`.
  virtual std::unique_ptr<Pool> copy() const = 0;
  /// Returns whether `take` and `release` look at the number of NPUs alone.
  virtual bool counts_only() const { return false; }
  /// Returns whether it depends on the size and shape of a job alone if it fits, and if another one does beside it.
  virtual bool places_by_size(const Job&) const { return true; }
  /// Returns the NPUs that a job has: whole hosts.
  virtual std::uint32_t occupied(const Job& job) const { return job.npus; }
  /// Returns the numbers of the leaves of a place, ascending; none where there are no leaves.
  virtual std::vector<std::uint32_t> leaves(const Place&) const { return {}; }

 protected:
  Pool(std::uint32_t num_npus, std::uint32_t num_free) : num_npus_(num_npus), num_free_(num_free) {}
  Pool(const Pool&) = default;
  Pool& operator=(const Pool&) = default;

  std::uint32_t num_npus_, num_free_;
};

/// A placement policy.
struct Policy {
  std::string_view name, help;
  Placing placing;
  std::unique_ptr<Pool> (*make)(const Places& places, std::uint64_t seed);
};
/// Returns all placement policies.
std::span<const Policy> policies();
/// Returns all NPUs as free ones under the policy of `places`.
std::unique_ptr<Pool> make_pool(const Places& places, std::uint64_t seed);

}  // namespace orrery::cluster
