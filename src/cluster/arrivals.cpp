#include "orrery/cluster/arrivals.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/campaign/draws.hpp"

namespace orrery::cluster {
namespace {

using campaign::Draws;

/// Streams of the draws of a job.
enum class Drawn : std::uint64_t { job_class = 1, arrival = 2, length = 3, part = 4, npus = 5 };

double draw(std::uint64_t seed, Drawn what, std::uint64_t job) {
  return Draws(seed, static_cast<std::uint64_t>(what)).unit(job);
}

/// Returns the mean length of jobs of a class with so many NPUs, in seconds.
double mean_length(const JobClass& c, std::uint32_t npus) {
  return c.length.average() * (c.counts_steps ? campaign::seconds(c.step_with(npus)) : 1);
}

Job draw_job(const std::vector<JobClass>& classes, double total, std::uint64_t seed, std::uint64_t number) {
  double u = draw(seed, Drawn::job_class, number);
  std::uint32_t k = 0;
  for (; k + 1 < classes.size() && u > classes[k].rate / total; ++k) u -= classes[k].rate / total;
  const JobClass& c = classes[k];
  const double length = c.length.quantile(draw(seed, Drawn::length, number), draw(seed, Drawn::part, number));
  Job job;
  job.npus = c.npus[static_cast<std::size_t>(draw(seed, Drawn::npus, number) * static_cast<double>(c.npus.size()))];
  const double seconds =
      c.counts_steps ? std::max(1.0, std::round(length)) * campaign::seconds(c.step_with(job.npus)) : length;
  job.length = std::max<Nanoseconds>(1, campaign::nanoseconds(seconds));
  job.estimate = campaign::nanoseconds(campaign::seconds(job.length) * c.overestimate);
  if (c.overestimate == 1) job.estimate = job.length;
  job.job_class = k;
  job.priority = c.priority.value_or(k);
  job.share = c.share;
  job.power = c.power;
  return job;
}

}  // namespace

std::vector<Job> draw_jobs(const Arrivals& arrivals, std::uint64_t seed) {
  double total = 0;
  for (const JobClass& c : arrivals.classes) total += c.rate;
  std::vector<Job> jobs;
  double time = 0;  // seconds
  for (std::uint64_t i = 0; arrivals.count == 0 || i < arrivals.count; ++i) {
    time += -std::log(draw(seed, Drawn::arrival, i)) / (total / campaign::seconds(campaign::day));
    const Nanoseconds arrival = campaign::nanoseconds(time);
    if (arrivals.count == 0 && arrival >= arrivals.duration) break;
    jobs.push_back(draw_job(arrivals.classes, total, seed, i));
    jobs.back().arrival = arrival;
  }
  return jobs;
}

double load_of(const Arrivals& arrivals, std::uint32_t num_npus) {
  double busy = 0;
  for (const JobClass& c : arrivals.classes) {
    double work = 0;  // NPU-seconds of a job
    for (const std::uint32_t n : c.npus) work += n * mean_length(c, n) / static_cast<double>(c.npus.size());
    busy += c.rate / campaign::seconds(campaign::day) * work;
  }
  return busy / num_npus;
}

}  // namespace orrery::cluster
