#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/cluster/schedule.hpp"
#include "orrery/cluster/step_level.hpp"

namespace orrery::cluster {

/// What is known of steps from earlier simulations.
class StepMemo {
 public:
  StepMemo(StepLevel& level, std::size_t most) : level_(level), most_(most) {}

  StepLevel& level() { return level_; }
  /// Simulates the jobs that are not known alone.
  void learn_alone(const std::vector<PlacedJob>& jobs);
  /// Simulates the components that are not known. All their jobs are known alone. Throws Error (bad_input) if there
  /// are too many.
  void learn_together(const std::vector<std::vector<PlacedJob>>& components);
  const AloneStep& alone(const PlacedJob& job) const { return alone_.at(job); }
  const std::vector<double>& factors(const std::vector<PlacedJob>& component);

  SharingFound found(std::span<const std::string> names) const;

 private:
  using Jobs = std::vector<PlacedJob>;
  struct Known {
    std::vector<double> factors;
    std::uint64_t times = 0;
  };

  StepLevel& level_;
  std::size_t most_;
  std::map<PlacedJob, AloneStep> alone_;  // by placement
  std::map<Jobs, double> seconds_;        // by signature of one job
  std::map<Jobs, Known> together_;        // by signature
};

/// Slows jobs down as simulations of all jobs that share links say (S8). A job alone in its component takes as long as
/// it does alone on its NPUs.
class SimulatedSlowdown final : public Slowdown {
 public:
  /// `class_of`: [classes of jobs] numbers of StepLevel. `packed`: [jobs] seconds of a step on a packed placement.
  SimulatedSlowdown(StepMemo& memo, std::vector<std::uint32_t> class_of, std::span<const Job> jobs,
                    std::vector<double> packed);

  std::vector<std::uint32_t> begin(std::uint32_t job, const Place& place,
                                   const std::vector<std::uint32_t>& leaves) override;
  std::vector<std::uint32_t> end(std::uint32_t job) override;
  std::vector<std::uint32_t> settle() override;
  double factor(std::uint32_t job) override { return running_.at(job).factor; }

 private:
  struct Running {
    PlacedJob placed;
    double factor = 1;
    bool is_known = false;  ///< its links are
  };

  /// Returns the running jobs that share links with one, directly or through others, ascending, itself included.
  std::vector<std::uint32_t> component_of(std::uint32_t job) const;
  std::vector<PlacedJob> placed(const std::vector<std::uint32_t>& jobs) const;

  StepMemo& memo_;
  std::vector<std::uint32_t> class_of_;
  std::span<const Job> jobs_;
  std::vector<double> packed_;
  std::map<std::uint32_t, Running> running_;
  std::map<std::uint32_t, std::set<std::uint32_t>> jobs_of_link_;
  std::set<std::uint32_t> touched_;  // running jobs whose components have changed
};

}  // namespace orrery::cluster
