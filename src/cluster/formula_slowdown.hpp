#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "orrery/cluster/schedule.hpp"

namespace orrery::cluster {

/// The slow-down of jobs that each keep a shared link busy for a share of their time alone: 1 + u times the sum of the
/// shares of the others, on the worst link.
class FormulaSlowdown final : public Slowdown {
 public:
  FormulaSlowdown(std::span<const Job> jobs, const Rules& rules) : jobs_(jobs), rules_(rules) {}

  std::vector<std::uint32_t> begin(std::uint32_t job, const Place& place,
                                   const std::vector<std::uint32_t>& leaves) override;
  std::vector<std::uint32_t> end(std::uint32_t job) override;
  double factor(std::uint32_t job) override;

 private:
  double share(std::uint32_t job) const { return jobs_[job].share > 0 ? jobs_[job].share : rules_.share; }
  std::vector<std::uint32_t> sharers(const std::vector<std::uint32_t>& links) const;

  std::span<const Job> jobs_;
  const Rules& rules_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> links_of_;  // running jobs and the links that they load
  std::map<std::uint32_t, std::set<std::uint32_t>> jobs_of_;      // links and their running jobs
};

}  // namespace orrery::cluster
