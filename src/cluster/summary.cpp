#include "orrery/cluster/summary.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/base/error.hpp"
#include "orrery/campaign/campaign.hpp"

namespace orrery::cluster {
namespace {

constexpr double bound_s = 10;  // shorter jobs count as this long in the bounded slow-down

/// Collects the times of jobs.
class Collector {
 public:
  void add(const Job& job, const JobResult& result) {
    const double wait = campaign::seconds(result.start - job.arrival),
                 jct = campaign::seconds(result.end - job.arrival);
    waits_.push_back(wait);
    jcts_.push_back(jct);
    sums_.slowdown += campaign::seconds(result.end - result.start) / campaign::seconds(job.length);
    sums_.bounded_slowdown += std::max(1.0, jct / std::max(campaign::seconds(job.length), bound_s));
    sums_.waited += result.start > job.arrival ? 1 : 0;
    sums_.stops += result.stops;
    sums_.lost += result.lost;
  }

  JobFigures figures() {
    JobFigures f = sums_;
    f.jobs = waits_.size();
    if (waits_.empty()) return f;
    const auto count = static_cast<double>(f.jobs);
    f.slowdown /= count;
    f.bounded_slowdown /= count;
    f.waited /= count;
    fill(waits_, f.wait, f.wait_median, f.wait_p95, f.wait_p99);
    fill(jcts_, f.jct, f.jct_median, f.jct_p95, f.jct_p99);
    return f;
  }

 private:
  static void fill(std::vector<double>& values, double& mean, double& median, double& p95, double& p99) {
    for (const double value : values) mean += value;
    mean /= static_cast<double>(values.size());
    std::ranges::sort(values);
    const auto at = [&](double share) {
      const double count = static_cast<double>(values.size());
      return values[static_cast<std::size_t>(std::clamp(std::ceil(share * count) - 1, 0.0, count - 1))];
    };
    median = at(0.5);
    p95 = at(0.95);
    p99 = at(0.99);
  }

  std::vector<double> waits_, jcts_;
  JobFigures sums_;
};

constexpr SummaryMetric all_metrics[] = {
    {"wait", "s", "time from arrival to first start, mean", [](const Summary& s) { return s.all.wait; }},
    {"wait_median", "s", "time from arrival to first start, median",
     [](const Summary& s) { return s.all.wait_median; }},
    {"wait_p95", "s", "time from arrival to first start, quantile of 95 %",
     [](const Summary& s) { return s.all.wait_p95; }},
    {"wait_p99", "s", "time from arrival to first start, quantile of 99 %",
     [](const Summary& s) { return s.all.wait_p99; }},
    {"waited", "1", "share of the jobs that did not start at once", [](const Summary& s) { return s.all.waited; }},
    {"jct", "s", "time from arrival to end, mean", [](const Summary& s) { return s.all.jct; }},
    {"jct_median", "s", "time from arrival to end, median", [](const Summary& s) { return s.all.jct_median; }},
    {"jct_p95", "s", "time from arrival to end, quantile of 95 %", [](const Summary& s) { return s.all.jct_p95; }},
    {"jct_p99", "s", "time from arrival to end, quantile of 99 %", [](const Summary& s) { return s.all.jct_p99; }},
    {"slowdown", "1", "time from the first start over that alone", [](const Summary& s) { return s.all.slowdown; }},
    {"bounded_slowdown", "1", "time from the arrival over that alone, which counts as 10 s or more",
     [](const Summary& s) { return s.all.bounded_slowdown; }},
    {"utilisation", "1", "NPU-time of jobs over that of the cluster", [](const Summary& s) { return s.utilisation; }},
    {"useless", "1", "share of the NPU-time of restarts and lost work", [](const Summary& s) { return s.useless; }},
    {"fragmentation", "1", "share of free NPU-time while the first of the queue had enough NPUs but no place",
     [](const Summary& s) { return s.fragmentation; }},
    {"blocked", "1", "share of free NPU-time while the first of the queue had too few",
     [](const Summary& s) { return s.blocked; }},
    {"unplaced", "1", "share of the time for which the first of the queue had enough NPUs but no place",
     [](const Summary& s) { return s.unplaced; }},
    {"rejected", "1", "share of the jobs that the full queue refused", [](const Summary& s) { return s.rejected; }},
    {"stops", "1", "stops of running jobs", [](const Summary& s) { return s.all.stops; }},
    {"lost", "s", "NPU-seconds of work that was done again", [](const Summary& s) { return s.all.lost; }},
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
  const Site& site = options.site;
  summary.energy = whole * (summary.utilisation * site.running + (1 - summary.utilisation) * site.idle);
  summary.peak_power = schedule.integrals.peak_power;
  summary.largest_ramp = schedule.integrals.largest_ramp;
  summary.host_failures = static_cast<double>(schedule.host_failures);
  summary.useless = whole > 0 ? useless / whole : 0;
  summary.unplaced = summary.makespan > 0 ? campaign::seconds(schedule.integrals.unplaced) / summary.makespan : 0;
  summary.rejected = jobs.empty() ? 0 : num_rejected / static_cast<double>(jobs.size());
  return summary;
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
