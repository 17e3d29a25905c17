#include "orrery/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formula_slowdown.hpp"
#include "orrery/base/error.hpp"
#include "orrery/cluster/arrivals.hpp"

namespace orrery::cluster {
namespace {

[[noreturn]] void refuse_cluster(std::string key, std::string_view found, std::string_view expected = {}) {
  throw Error(ErrorCode::bad_input, {.key = std::move(key)}, found, expected);
}

template <class AnyFigures, class Visit>
void visit_figures(AnyFigures& f, Visit visit) {
  visit(f.jobs);
  for (auto* const value : {&f.wait, &f.wait_median, &f.wait_p95, &f.wait_p99, &f.jct, &f.jct_median, &f.jct_p95,
                            &f.jct_p99, &f.slowdown, &f.bounded_slowdown, &f.waited, &f.stops, &f.lost})
    visit(*value);
}

template <class AnySummary, class Visit>
void visit_numbers(AnySummary& s, Visit visit) {
  visit_figures(s.all, visit);
  for (auto& figures : s.classes) visit_figures(figures, visit);
  for (auto* const value : {&s.makespan, &s.utilisation, &s.useless, &s.fragmentation, &s.blocked, &s.unplaced,
                            &s.rejected, &s.energy, &s.peak_power})
    visit(*value);
}

}  // namespace

Jobs jobs_of(const Options& options, const std::string& trace, std::uint32_t number) {
  const Arrivals& arrivals = options.arrivals;
  Jobs result;
  if (!arrivals.trace.empty()) {
    auto read =
        read_trace(trace, arrivals.trace.string(), columns_of(arrivals.columns, {.key = "cluster.trace.columns"}));
    result = {std::move(read.jobs), std::move(read.classes), read.left_out};
    for (Job& job : result.jobs) job.priority = job.job_class;
  } else if (!arrivals.jobs.empty()) {
    result = {arrivals.jobs, arrivals.classes_of_jobs, 0};
  } else {
    result.jobs = draw_jobs(arrivals, options.seed + number);
    for (const JobClass& c : arrivals.classes) result.classes.push_back(c.name);
  }
  return result;
}

Found run(const Options& options, const std::string& trace, const Keep& keep, parallel::Communicator& world) {
  Found found;
  const auto ranks = static_cast<std::uint32_t>(world.size());
  std::vector<double> mine;
  std::size_t num_classes = 0;
  world.agree([&] {
    for (std::uint32_t r = 0; r < options.replications; ++r) {
      if (r % ranks != static_cast<std::uint32_t>(world.rank().value())) continue;
      Jobs jobs = jobs_of(options, trace, r);
      num_classes = jobs.classes.size();
      FormulaSlowdown formula(jobs.jobs, options.rules);
      Slowdown* const slowdown = options.rules.sharing == Sharing::formula ? &formula : nullptr;
      Schedule schedule = cluster::schedule(jobs.jobs, options, options.seed + r, slowdown, r == 0 ? keep : Keep{});
      Summary summary = summarise(jobs.jobs, schedule, options, num_classes, options.places.npus);
      visit_numbers(summary, [&](auto number) { mine.push_back(static_cast<double>(number)); });
      if (r == 0) {
        found.jobs = std::move(jobs);
        found.schedule = std::move(schedule);
      }
    }
  });
  std::vector<std::int64_t> most = {static_cast<std::int64_t>(num_classes)};
  world.maximum(most);
  std::vector<std::size_t> sizes;
  const auto all = world.all_gather(std::span<const double>(mine), &sizes);
  std::vector<const double*> next;
  const double* begin = all.data();
  for (const std::size_t size : sizes) {
    next.push_back(begin);
    begin += size;
  }
  for (std::uint32_t r = 0; r < options.replications; ++r) {
    Summary& summary = found.summaries.emplace_back();
    summary.classes.resize(static_cast<std::size_t>(most.front()));
    visit_numbers(summary, [&](auto& number) {
      number = static_cast<std::remove_reference_t<decltype(number)>>(*next[r % ranks]++);
    });
  }
  return found;
}

void validate(const Options& options, bool overload) {
  const Places& places = options.places;
  const Rules& rules = options.rules;
  if (rules.preemption && rules.admission != Admission::priority)
    refuse_cluster("cluster.preemption", "preemption needs admission: priority");
  if (places.policy == Placing::torus && places.torus[0] == 0)
    refuse_cluster("cluster.torus", "the key is missing", "three sizes, for placement: torus");
  if (places.policy != Placing::torus && places.torus[0] > 0)
    refuse_cluster("cluster.placement", "found another policy than torus", "torus, which cluster.torus is for");
  if (places.npus == 0)
    refuse_cluster("cluster.npus", "the key is missing, and there is no system", "a number of NPUs");
  if (places.leaf > 0 && places.leaf % places.npus_per_host != 0)
    refuse_cluster("cluster.leaf", fmt::format("{} NPUs are no whole hosts of {}", places.leaf, places.npus_per_host));
  if (rules.sharing == Sharing::formula && rules.links == SharedLinks::uplinks &&
      (places.policy == Placing::none || places.policy == Placing::torus))
    refuse_cluster("cluster.sharing", "uplinks are shared by places below leaves",
                   "placement: first, contiguous, packed or random");
  if (places.npus_per_host > 1 && (places.policy == Placing::none || places.policy == Placing::torus))
    refuse_cluster("cluster.npus-per-host", "whole hosts need places",
                   "placement: first, contiguous, packed or random");
  const Arrivals& arrivals = options.arrivals;
  const bool has_jobs = !arrivals.jobs.empty(), has_classes = !arrivals.classes.empty();
  const bool has_trace = !arrivals.trace.empty();
  if ((has_jobs && has_classes) || (has_trace && (has_jobs || has_classes)))
    refuse_cluster("cluster", "classes, a list of jobs and a trace exclude each other", "one of them");
  for (std::size_t i = 0; i < arrivals.jobs.size(); ++i)
    if (arrivals.jobs[i].length <= 0)
      refuse_cluster(fmt::format("cluster.jobs.{}.length", i), "found 0 s", "more than 0 s");
  if (has_jobs || has_trace) return;
  for (std::size_t k = 0; k < arrivals.classes.size(); ++k) {
    const JobClass& c = arrivals.classes[k];
    if (const auto most = *std::ranges::max_element(c.npus); most > places.npus)
      refuse_cluster(fmt::format("cluster.classes.{}", k),
                     fmt::format("a job of {} NPUs can never run on {}", most, places.npus));
    if (!(c.rate > 0)) refuse_cluster(fmt::format("cluster.classes.{}.rate", k), "the key is missing or 0", "a rate");
  }
  if (arrivals.count == 0 && arrivals.duration == 0)
    refuse_cluster("cluster.jobs", "neither jobs nor duration is given", "one of them");
  const double load = load_of(arrivals, places.npus);
  if (load >= 1 && !overload && !rules.queue_limit)
    refuse_cluster("cluster",
                   fmt::format("the load is {:.2f} (NPU-hours asked for in an hour over NPUs); the queue grows "
                               "for ever. Use --overload to see its beginning",
                               load));
}

}  // namespace orrery::cluster
