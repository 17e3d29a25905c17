#include "orrery/cluster/summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "orrery/base/error.hpp"
#include "orrery/campaign/campaign.hpp"

namespace orrery::cluster {
namespace {

constexpr double bound_s = 10;  // shorter jobs count as this long in the bounded slow-down

/// Collects the times of jobs.
class Collector {
 public:
  void add(const Job& job, const JobResult& result) {
    const TimesOfJob times = times_of(job, result);
    waits_.push_back(times.wait);
    runs_.push_back(times.run);
    jcts_.push_back(times.jct);
    slowdowns_.push_back(times.slowdown);
    bounded_.push_back(times.bounded_slowdown);
    sums_.waited += result.start > job.arrival ? 1 : 0;
    sums_.stops += result.stops;
    sums_.lost += result.lost;
    sums_.energy += result.energy;
  }

  JobFigures figures() {
    JobFigures f = sums_;
    f.jobs = waits_.size();
    if (waits_.empty()) return f;
    f.waited /= static_cast<double>(f.jobs);
    f.wait = distribution(waits_);
    f.run = distribution(runs_);
    f.jct = distribution(jcts_);
    f.slowdown = distribution(slowdowns_);
    f.bounded_slowdown = distribution(bounded_);
    return f;
  }

 private:
  /// Sorts the values.
  static Distribution distribution(std::vector<double>& values) {
    Distribution found;
    const auto count = static_cast<double>(values.size());
    for (const double value : values) found.mean += value;
    found.mean /= count;
    std::ranges::sort(values);
    const auto at = [&](double share) {
      return values[static_cast<std::size_t>(std::clamp(std::ceil(share * count) - 1, 0.0, count - 1))];
    };
    found.median = at(0.5);
    found.p95 = at(0.95);
    found.p99 = at(0.99);
    return found;
  }

  std::vector<double> waits_, runs_, jcts_, slowdowns_, bounded_;
  JobFigures sums_;
};

constexpr SummaryMetric all_metrics[] = {
    {"wait", "s", "time from arrival to first start, mean", [](const Summary& s) { return s.all.wait.mean; }},
    {"wait_median", "s", "time from arrival to first start, median",
     [](const Summary& s) { return s.all.wait.median; }},
    {"wait_p95", "s", "time from arrival to first start, quantile of 95 %",
     [](const Summary& s) { return s.all.wait.p95; }},
    {"wait_p99", "s", "time from arrival to first start, quantile of 99 %",
     [](const Summary& s) { return s.all.wait.p99; }},
    {"waited", "1", "share of the jobs that did not start at once", [](const Summary& s) { return s.all.waited; }},
    {"run", "s", "time from first start to end, mean", [](const Summary& s) { return s.all.run.mean; }},
    {"run_median", "s", "time from first start to end, median", [](const Summary& s) { return s.all.run.median; }},
    {"run_p95", "s", "time from first start to end, quantile of 95 %", [](const Summary& s) { return s.all.run.p95; }},
    {"run_p99", "s", "time from first start to end, quantile of 99 %", [](const Summary& s) { return s.all.run.p99; }},
    {"jct", "s", "time from arrival to end, mean", [](const Summary& s) { return s.all.jct.mean; }},
    {"jct_median", "s", "time from arrival to end, median", [](const Summary& s) { return s.all.jct.median; }},
    {"jct_p95", "s", "time from arrival to end, quantile of 95 %", [](const Summary& s) { return s.all.jct.p95; }},
    {"jct_p99", "s", "time from arrival to end, quantile of 99 %", [](const Summary& s) { return s.all.jct.p99; }},
    {"slowdown", "1", "time from the first start over that alone, mean",
     [](const Summary& s) { return s.all.slowdown.mean; }},
    {"slowdown_median", "1", "time from the first start over that alone, median",
     [](const Summary& s) { return s.all.slowdown.median; }},
    {"slowdown_p95", "1", "time from the first start over that alone, quantile of 95 %",
     [](const Summary& s) { return s.all.slowdown.p95; }},
    {"slowdown_p99", "1", "time from the first start over that alone, quantile of 99 %",
     [](const Summary& s) { return s.all.slowdown.p99; }},
    {"bounded_slowdown", "1", "time from the arrival over that alone, which counts as 10 s or more, mean",
     [](const Summary& s) { return s.all.bounded_slowdown.mean; }},
    {"bounded_slowdown_median", "1", "time from the arrival over that alone, which counts as 10 s or more, median",
     [](const Summary& s) { return s.all.bounded_slowdown.median; }},
    {"bounded_slowdown_p95", "1",
     "time from the arrival over that alone, which counts as 10 s or more, quantile of 95 %",
     [](const Summary& s) { return s.all.bounded_slowdown.p95; }},
    {"bounded_slowdown_p99", "1",
     "time from the arrival over that alone, which counts as 10 s or more, quantile of 99 %",
     [](const Summary& s) { return s.all.bounded_slowdown.p99; }},
    {"utilisation", "1", "NPU-time of jobs over that of the cluster", [](const Summary& s) { return s.utilisation; }},
    {"useless", "1", "share of the NPU-time of restarts and lost work", [](const Summary& s) { return s.useless; }},
    {"fragmentation", "1", "share of free NPU-time while the first of the queue had enough NPUs but no place",
     [](const Summary& s) { return s.fragmentation; }},
    {"blocked", "1", "share of free NPU-time while the first of the queue had too few",
     [](const Summary& s) { return s.blocked; }},
    {"unplaced", "1", "share of the time for which the first of the queue had enough NPUs but no place",
     [](const Summary& s) { return s.unplaced; }},
    {"rejected", "1", "share of the jobs that the full queue refused", [](const Summary& s) { return s.rejected; }},
    {"stops", "1", "stops of running jobs", [](const Summary& s) { return s.stops; }},
    {"lost", "s", "NPU-seconds of work that was done again", [](const Summary& s) { return s.lost; }},
    {"makespan", "s", "time from first arrival to last end", [](const Summary& s) { return s.makespan; }},
    {"energy", "J", "energy of all NPUs", [](const Summary& s) { return s.energy; }},
    {"peak_power", "W", "highest power of all NPUs", [](const Summary& s) { return s.peak_power; }},
    {"largest_ramp", "W/s", "power by which starts of jobs rose within a minute, over the minute, at the most",
     [](const Summary& s) { return s.largest_ramp; }},
    {"host_failures", "1", "failures of hosts", [](const Summary& s) { return s.host_failures; }},
    {"jobs", "1", "jobs that are counted", [](const Summary& s) { return static_cast<double>(s.all.jobs); }},
};

}  // namespace

std::span<const SummaryMetric> summary_metrics() { return all_metrics; }

Summary summarise(std::span<const Job> jobs, const Schedule& schedule, const Options& options, std::size_t num_classes,
                  std::uint32_t num_npus) {
  Summary summary;
  Collector all;
  std::vector<Collector> classes(num_classes);
  __int128 inside = 0;
  double useless = 0, num_rejected = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobResult& result = schedule.jobs[i];
    if (result.is_rejected()) {
      ++num_rejected;
      continue;
    }
    inside += result.end - jobs[i].arrival;
    useless += result.useless;
    summary.stops += result.stops;
    summary.lost += result.lost;
    if (i < options.warm_up) continue;
    all.add(jobs[i], result);
    classes[jobs[i].job_class].add(jobs[i], result);
  }
  ensure(inside == schedule.integrals.inside, "the integral of jobs inside is the sum of their times");
  summary.all = all.figures();
  for (Collector& collector : classes) summary.classes.push_back(collector.figures());
  summary.makespan = campaign::seconds(schedule.end - schedule.begin);
  const double whole = summary.makespan * num_npus;
  const auto share = [&](__int128 part) { return whole > 0 ? static_cast<double>(part) * 1e-9 / whole : 0; };
  summary.utilisation = share(schedule.integrals.busy);
  summary.fragmentation = share(schedule.integrals.fragmentation);
  summary.blocked = share(schedule.integrals.blocked);
  summary.energy = schedule.integrals.energy;
  summary.peak_power = schedule.integrals.peak_power;
  summary.largest_ramp = schedule.integrals.largest_ramp;
  summary.host_failures = static_cast<double>(schedule.host_failures);
  summary.useless = whole > 0 ? useless / whole : 0;
  summary.unplaced = summary.makespan > 0 ? campaign::seconds(schedule.integrals.unplaced) / summary.makespan : 0;
  summary.rejected = jobs.empty() ? 0 : num_rejected / static_cast<double>(jobs.size());
  return summary;
}

TimesOfJob times_of(const Job& job, const JobResult& result) {
  TimesOfJob times;
  const double alone = campaign::seconds(job.length);
  times.wait = campaign::seconds(result.start - job.arrival);
  times.run = campaign::seconds(result.end - result.start);
  times.jct = campaign::seconds(result.end - job.arrival);
  times.slowdown = times.run / alone;
  times.bounded_slowdown = std::max(1.0, times.jct / std::max(alone, bound_s));
  return times;
}

std::vector<std::pair<std::uint32_t, JobFigures>> figures_by_size(std::span<const Job> jobs, const Schedule& schedule,
                                                                  std::uint32_t warm_up) {
  std::map<std::uint32_t, Collector> collectors;
  for (std::size_t i = warm_up; i < jobs.size(); ++i)
    if (!schedule.jobs[i].is_rejected()) collectors[jobs[i].npus].add(jobs[i], schedule.jobs[i]);
  std::vector<std::pair<std::uint32_t, JobFigures>> found;
  for (auto& [npus, collector] : collectors) found.emplace_back(npus, collector.figures());
  return found;
}

double half_width_of_waits(std::span<const Job> jobs, const Schedule& schedule, std::uint32_t warm_up) {
  constexpr std::size_t num_batches = 32;
  std::vector<double> waits;
  for (std::size_t i = warm_up; i < jobs.size(); ++i)
    if (!schedule.jobs[i].is_rejected()) waits.push_back(campaign::seconds(schedule.jobs[i].start - jobs[i].arrival));
  const std::size_t size = waits.size() / num_batches;
  if (size < 10) return 0;
  std::vector<double> means;
  for (std::size_t b = 0; b < num_batches; ++b) {
    double sum = 0;
    for (std::size_t i = b * size; i < (b + 1) * size; ++i) sum += waits[i];
    means.push_back(sum / static_cast<double>(size));
  }
  return campaign::estimate(means).half_width;
}

}  // namespace orrery::cluster
