#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "host_clock.hpp"
#include "orrery/cluster/schedule.hpp"
#include "refusals.hpp"

namespace orrery::cluster {

/// A job in the scheduler.
struct State {
  Place place;
  Nanoseconds started = 0;  ///< when it got its NPUs the last time
  Nanoseconds since = 0;    ///< when it began to make progress at the present factor
  long double done = 0;     ///< ns of work, alone
  double factor = 1;
  std::uint32_t version = 0;  ///< version of its planned end
  bool is_running = false;

  /// Returns when the job ends by the user's estimate.
  Nanoseconds expected_end(const Job& job) const { return since + job.estimate - static_cast<Nanoseconds>(done); }
};

/// The state machine of a scheduler (S1 to S7).
class Scheduler {
 public:
  Scheduler(std::span<const Job> jobs, const Options& options, std::uint64_t seed, Slowdown* slowdown,
            const Keep& keep);

  Schedule run();

 private:
  using Key = std::tuple<Nanoseconds, Nanoseconds, std::uint32_t>;    // the order of the queue
  using End = std::tuple<Nanoseconds, std::uint32_t, std::uint32_t>;  // time, job, version
  using Expected = std::pair<Nanoseconds, std::uint32_t>;             // end by the estimate, job

  Key key(std::uint32_t job) const;
  void pass_time(Nanoseconds until);
  void end_jobs();
  void change_hosts();
  void fail_host(std::uint32_t host);
  Place place_of_host(std::uint32_t host) const;
  Nanoseconds next_time() const;
  void admit_arrivals();
  void pass();
  bool preempt(std::uint32_t head);
  std::vector<std::uint32_t> lower_jobs(std::uint32_t head) const;
  void backfill();
  bool may_backfill(std::uint32_t job);
  bool knows_shadow(std::uint32_t head) const {
    return shadow_.head == head && shadow_.version == at_.version && shadow_.time > at_.now;
  }
  /// Finds the shadow time of the first of the queue, and the free NPUs then.
  void find_shadow(std::uint32_t head);
  void bisect_shadow(std::uint32_t head);
  void start(std::uint32_t job);
  void stop(std::uint32_t job, bool is_over);
  void update(std::vector<std::uint32_t> changed);
  void plan_end(std::uint32_t job);
  void note_usage();
  void require_possible() const;
  /// Returns whether a job has a place and, with it, the site has enough power.
  bool can_start(std::uint32_t job) const;
  bool can_ever_start(std::uint32_t job) const;
  bool has_power(std::uint32_t job) const;
  double power_with(double above_idle) const;
  double raise_of(std::uint32_t job, std::uint32_t npus) const;
  void raise_power(double raise);

  /// What EASY knows of the first of the queue.
  struct Shadow {
    std::uint32_t head = 0;
    std::uint64_t version = 0;  ///< version of the running jobs
    Nanoseconds time = 0;
    std::unique_ptr<Pool> later;  ///< free NPUs then
    bool is_tried = false;        ///< all jobs of the queue have been looked at
    Refusals unplaced = {};       ///< jobs that have no place now
    Refusals delaying = {};       ///< jobs that would leave the first of the queue none then
  };

  std::span<const Job> jobs_;
  const Options& options_;
  Slowdown* slowdown_;
  Keep keep_;
  std::unique_ptr<Pool> pool_;
  std::vector<State> states_;
  std::set<Key> queue_;
  std::set<Expected> running_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<std::uint32_t> arrivals_;  // jobs that have not arrived, the next one last
  std::set<std::uint32_t> slowed_;       // running jobs whose factor is not 1
  Shadow shadow_;
  struct Present {
    Nanoseconds now = 0;
    std::uint64_t version = 1;  ///< version of the running jobs
    std::uint64_t inside = 0;
    std::uint32_t busy = 0;
    double raised = 0;                   ///< W that the NPUs of jobs draw more than idle ones
    std::vector<std::uint32_t> arrived;  ///< since the last pass
    std::vector<std::uint32_t> changed;  ///< jobs whose factors may have changed at this time
  };
  Present at_;
  /// Reasons besides other jobs why jobs wait.
  struct Holds {
    Nanoseconds until = 0;                              ///< no job starts before, because the power rises
    std::deque<std::pair<Nanoseconds, double>> raises;  ///< raises of the power in the last minute, in W
    double sum = 0;                                     ///< sum of these raises
    std::unique_ptr<HostClock> hosts;                   ///< null: no host fails
  };
  Holds holds_;
  Schedule schedule_;
};

}  // namespace orrery::cluster
