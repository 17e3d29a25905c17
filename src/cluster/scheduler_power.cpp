#include <algorithm>

#include "scheduler.hpp"

// The power of the site, as far as the scheduler is concerned.
namespace orrery::cluster {
namespace {

constexpr Nanoseconds ramp_window = 60 * campaign::second;

}  // namespace

/// Returns the power of the site in W if the NPUs of jobs draw so much more than idle ones.
double Scheduler::power_with(double above_idle) const { return above_idle + pool_->num_npus() * options_.site.idle; }

/// Returns by how much a job raises the power of the site, in W.
double Scheduler::raise_of(std::uint32_t job, std::uint32_t npus) const {
  const Site& site = options_.site;
  return npus * ((jobs_[job].power > 0 ? jobs_[job].power : site.running) - site.idle);
}

bool Scheduler::has_power(std::uint32_t job) const {
  if (holds_.until > at_.now) return false;
  const double raise = raise_of(job, pool_->occupied(jobs_[job]));
  return power_with(at_.raised + raise) <= options_.site.cap_at(at_.now);
}

/// Notes that a job starts. With a ramp no other one does until the power has risen by as much at that rate.
void Scheduler::raise_power(double raise) {
  const Site& site = options_.site;
  auto& [until, recent, sum, hosts] = holds_;
  for (; !recent.empty() && recent.front().first + ramp_window <= at_.now; recent.pop_front())
    sum -= recent.front().second;
  recent.emplace_back(at_.now, raise);
  sum += raise;
  at_.raised += raise;
  Integrals& found = schedule_.integrals;
  found.largest_ramp = std::max(found.largest_ramp, sum / campaign::seconds(ramp_window));
  found.peak_power = std::max(found.peak_power, power_with(at_.raised));
  if (site.ramp > 0) until = at_.now + campaign::nanoseconds(std::max(0.0, raise / site.ramp));
}

/// Returns whether a job has a place in an empty cluster, and enough power at some time of the day.
bool Scheduler::can_ever_start(std::uint32_t job) const {
  const Site& site = options_.site;
  double most = site.cap_at(0);
  for (const auto& [time, cap] : site.caps) most = std::max(most, site.cap_at(time));
  const double raise = raise_of(job, pool_->occupied(jobs_[job]));
  return power_with(raise) <= most && pool_->fits(jobs_[job]);
}

}  // namespace orrery::cluster
