#include "orrery/study/cluster_tables.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/campaign/campaign.hpp"
#include "orrery/cluster/arrivals.hpp"
#include "orrery/cluster/formulas.hpp"
#include "readable_seconds.hpp"
#include "table_columns.hpp"

namespace orrery::study {
namespace {

using cluster::JobFigures;
using results::FileTable;

constexpr std::size_t most_kept_places = 1'000'000;  // NPUs of all jobs

FileTable summary_of(const ClusterResults& r) {
  const auto metrics = cluster::summary_metrics();
  std::vector<campaign::Estimate> all;
  for (const auto& metric : metrics) {
    std::vector<double> values;
    for (const auto& summary : r.found.summaries) values.push_back(metric.value(summary));
    all.push_back(campaign::estimate(values));
  }
  return {"/cluster/summary", "means over the replications", summary_columns(metrics, all)};
}

FileTable replications_of(const ClusterResults& r) {
  FileTable table{"/cluster/replications", "one row for each replication", {}};
  std::int64_t number = 0;
  table.columns.push_back(counts("number", "1", "number of the replication", r.found.summaries,
                                 [&](const cluster::Summary&) { return number++; }));
  for (const auto& metric : cluster::summary_metrics())
    table.columns.push_back(numbers(std::string(metric.name), std::string(metric.unit), std::string(metric.text),
                                    r.found.summaries, metric.value));
  return table;
}

void add_figures(FileTable& table, const std::vector<JobFigures>& figures) {
  table.columns.push_back(counts("jobs", "1", "jobs that are counted", figures, &JobFigures::jobs));
  const std::tuple<const char*, const char*, cluster::Distribution JobFigures::*> distributions[] = {
      {"wait", "s", &JobFigures::wait},
      {"run", "s", &JobFigures::run},
      {"jct", "s", &JobFigures::jct},
      {"slowdown", "1", &JobFigures::slowdown},
      {"bounded_slowdown", "1", &JobFigures::bounded_slowdown}};
  using cluster::Distribution;
  const std::pair<const char*, double Distribution::*> parts[] = {{"", &Distribution::mean},
                                                                  {"_median", &Distribution::median},
                                                                  {"_p95", &Distribution::p95},
                                                                  {"_p99", &Distribution::p99}};
  for (const auto& [name, unit, distribution] : distributions)
    for (const auto& [suffix, part] : parts)
      table.columns.push_back(numbers(fmt::format("{}{}", name, suffix), unit, "as in /cluster/summary", figures,
                                      [&](const JobFigures& f) { return f.*distribution.*part; }));
  const std::tuple<const char*, const char*, double JobFigures::*> sums[] = {{"waited", "1", &JobFigures::waited},
                                                                             {"stops", "1", &JobFigures::stops},
                                                                             {"lost", "s", &JobFigures::lost},
                                                                             {"energy", "J", &JobFigures::energy}};
  for (const auto& [name, unit, member] : sums)
    table.columns.push_back(numbers(name, unit, "as in /cluster/summary", figures, member));
}

FileTable classes_of(const ClusterResults& r) {
  std::vector<std::pair<std::int64_t, std::string>> rows;
  std::vector<JobFigures> figures;
  for (std::size_t i = 0; i < r.found.summaries.size(); ++i)
    for (std::size_t k = 0; k < r.found.summaries[i].classes.size(); ++k) {
      rows.emplace_back(i, r.found.jobs.classes.empty() ? std::string() : r.found.jobs.classes[k]);
      figures.push_back(r.found.summaries[i].classes[k]);
    }
  FileTable table{"/cluster/classes", "one row for each class of each replication", {}};
  table.columns.push_back(counts("replication", "1", "number", rows, [](const auto& row) { return row.first; }));
  table.columns.push_back(texts("class", "name", rows, [](const auto& row) { return row.second; }));
  add_figures(table, figures);
  return table;
}

FileTable sizes_of(const ClusterResults& r) {
  const auto by_size = cluster::figures_by_size(r.found.jobs.jobs, r.found.schedule, r.options.warm_up);
  std::vector<JobFigures> figures;
  for (const auto& [npus, found] : by_size) figures.push_back(found);
  FileTable table{"/cluster/sizes", "replication 0: one row for each number of NPUs", {}};
  table.columns.push_back(counts("npus", "1", "NPUs of a job", by_size, [](const auto& row) { return row.first; }));
  add_figures(table, figures);
  return table;
}

/// Adds the times of jobs; 0 for those that were refused.
void add_times(FileTable& table, const ClusterResults& r) {
  std::vector<cluster::TimesOfJob> times;
  for (std::size_t i = 0; i < r.found.schedule.jobs.size(); ++i) {
    const auto& result = r.found.schedule.jobs[i];
    times.push_back(result.is_rejected() ? cluster::TimesOfJob{} : cluster::times_of(r.found.jobs.jobs[i], result));
  }
  using cluster::TimesOfJob;
  table.columns.push_back(numbers("wait", "s", "time from arrival to first start", times, &TimesOfJob::wait));
  table.columns.push_back(numbers("run", "s", "time from first start to end", times, &TimesOfJob::run));
  table.columns.push_back(numbers("jct", "s", "time from arrival to end", times, &TimesOfJob::jct));
  table.columns.push_back(numbers("slowdown", "1", "run over the time alone", times, &TimesOfJob::slowdown));
  table.columns.push_back(numbers("bounded_slowdown", "1", "jct over the time alone, at least 10 s of which count",
                                  times, &TimesOfJob::bounded_slowdown));
}

FileTable jobs_of(const ClusterResults& r) {
  const auto& jobs = r.found.jobs.jobs;
  const auto& results = r.found.schedule.jobs;
  FileTable table{"/cluster/jobs", "jobs of replication 0, by number", {}};
  table.columns.push_back(texts("name", "name", jobs, &cluster::Job::name));
  table.columns.push_back(
      texts("class", "class", jobs, [&](const cluster::Job& job) { return r.found.jobs.classes[job.job_class]; }));
  table.columns.push_back(counts("arrival", "ns", "when it was submitted", jobs, &cluster::Job::arrival));
  table.columns.push_back(counts("npus", "1", "NPUs that it asked for", jobs, &cluster::Job::npus));
  table.columns.push_back(counts("length", "ns", "time alone", jobs, &cluster::Job::length));
  table.columns.push_back(
      counts("start", "ns", "first start; -1: it was refused", results, &cluster::JobResult::start));
  table.columns.push_back(counts("end", "ns", "end; -1: it was refused", results, &cluster::JobResult::end));
  table.columns.push_back(
      counts("occupied", "ns", "time for which it had NPUs", results, &cluster::JobResult::occupied));
  table.columns.push_back(counts("stops", "1", "stops by other jobs", results, &cluster::JobResult::stops));
  table.columns.push_back(numbers("lost", "s", "NPU-seconds of lost work", results, &cluster::JobResult::lost));
  table.columns.push_back(counts("leaves", "1", "leaves on which it began", results, &cluster::JobResult::leaves));
  const std::uint32_t leaf = r.options.places.leaf;
  table.columns.push_back(counts("more_leaves", "1", "leaves beyond the fewest that have so many NPUs", results,
                                 [&](const cluster::JobResult& job) {
                                   const std::uint32_t fewest = leaf == 0 ? 1 : (job.npus + leaf - 1) / leaf;
                                   return job.leaves > fewest ? job.leaves - fewest : 0;
                                 }));
  add_times(table, r);
  table.columns.push_back(numbers("energy", "J", "energy of its NPUs", results, &cluster::JobResult::energy));
  if (r.usd_per_npu_hour)
    table.columns.push_back(numbers("cost", "USD", "price of its NPUs", results, [&](const cluster::JobResult& job) {
      return campaign::seconds(job.occupied) / 3600 * job.npus * *r.usd_per_npu_hour;
    }));
  return table;
}

FileTable usage_of(const ClusterResults& r) {
  const auto& usage = r.found.schedule.usage;
  FileTable table{"/cluster/usage", "replication 0: what is used from each time on", {}};
  table.columns.push_back(counts("time", "ns", "time", usage, &cluster::Usage::time));
  table.columns.push_back(counts("busy", "1", "NPUs of jobs", usage, &cluster::Usage::busy));
  table.columns.push_back(counts("free", "1", "free NPUs", usage, &cluster::Usage::free));
  table.columns.push_back(counts("queue", "1", "waiting jobs", usage, &cluster::Usage::queue));
  table.columns.push_back(
      counts("largest", "1", "NPUs of the largest job with room; -1: not looked for", usage, &cluster::Usage::largest));
  return table;
}

/// Returns the NPUs of each job, if they are few enough to be kept.
FileTable places_of(const ClusterResults& r) {
  FileTable table{"/cluster/places", "replication 0: the last place of each job, in the order of its own NPUs", {}};
  std::vector<std::int64_t> job, npu;
  for (std::size_t i = 0; i < r.found.schedule.places.size() && npu.size() < most_kept_places; ++i)
    for (const std::uint32_t n : r.found.schedule.places[i].npus) {
      job.push_back(static_cast<std::int64_t>(i));
      npu.push_back(n);
    }
  table.columns.push_back({"job", "1", "number of the job", std::move(job)});
  table.columns.push_back({"npu", "1", "NPU", std::move(npu)});
  return table;
}

/// Returns the components that were simulated.
FileTable sharing_of(const ClusterResults& r) {
  struct Row {
    std::int64_t component;
    std::string job_class;
    std::int64_t npus, times;
    double factor;
  };
  std::vector<Row> rows;
  const auto& components = r.found.sharing.components;
  for (std::size_t i = 0; i < components.size(); ++i)
    for (std::size_t j = 0; j < components[i].classes.size(); ++j)
      rows.push_back({static_cast<std::int64_t>(i), components[i].classes[j], components[i].npus[j],
                      static_cast<std::int64_t>(components[i].times), components[i].factors[j]});
  FileTable table{"/cluster/sharing", "a row for each job of each component of jobs that shared links", {}};
  table.columns.push_back(counts("component", "1", "number of the component", rows, &Row::component));
  table.columns.push_back(texts("class", "class of the job", rows, &Row::job_class));
  table.columns.push_back(counts("npus", "1", "NPUs of the job", rows, &Row::npus));
  table.columns.push_back(numbers("factor", "1", "time of a step over that alone", rows, &Row::factor));
  table.columns.push_back(counts("times", "1", "how often the component came up", rows, &Row::times));
  return table;
}

/// Returns what formulas say where one class of jobs of one size has exponential lengths.
FileTable forms_of(const ClusterResults& r) {
  std::vector<std::pair<std::string, double>> forms;
  const auto& classes = r.options.arrivals.classes;
  if (classes.size() == 1 && r.options.arrivals.jobs.empty() && r.options.arrivals.trace.empty()) {
    const auto& c = classes.front();
    const auto servers = static_cast<unsigned>(r.options.places.npus / c.npus.front());
    const double mean = c.length.average() * (c.counts_steps ? campaign::seconds(c.step_with(c.npus.front())) : 1);
    const double load = c.rate / campaign::seconds(campaign::day) * mean;
    if (c.length.kind == campaign::SpreadKind::exponential && c.npus.size() == 1) {
      forms.emplace_back("erlang_b", cluster::erlang_b(servers, load));
      if (load < servers) {
        forms.emplace_back("erlang_c", cluster::erlang_c(servers, load));
        forms.emplace_back("wait", cluster::mean_wait(servers, load / mean, 1 / mean));
      }
    }
  }
  FileTable table{"/cluster/closed_forms", "what formulas say of the cluster", {}};
  table.columns.push_back(texts("name", "name", forms, [](const auto& form) { return form.first; }));
  table.columns.push_back(numbers("value", "1", "value", forms, [](const auto& form) { return form.second; }));
  return table;
}

void print_class(std::string_view name, const JobFigures& f) {
  fmt::print("{:<10.10} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6.3f} {:>7.3g} {:>5}\n", name, f.jobs,
             readable_seconds(f.wait.mean), readable_seconds(f.wait.p95), readable_seconds(f.jct.mean),
             readable_seconds(f.jct.p95), f.slowdown.mean, f.bounded_slowdown.mean, f.stops);
}

}  // namespace

results::TableFile cluster_file_of(const ClusterResults& r, const std::string& command_line) {
  results::TableFile content{
      .format = "orrery-cluster",
      .inputs = r.file.configuration.inputs,
      .attributes = {{"command_line", command_line}, {"leaf", fmt::to_string(r.options.places.leaf)}},
      .groups = {{"/cluster", "many jobs on one cluster over time"}},
      .tables = {}};
  for (auto* const table :
       {summary_of, replications_of, classes_of, sizes_of, jobs_of, usage_of, places_of, sharing_of, forms_of})
    content.tables.push_back(table(r));
  return content;
}

void print_cluster(const ClusterResults& r) {
  const auto& first = r.found.summaries.front();
  const auto mean = [&](double cluster::Summary::*member) {
    double sum = 0;
    for (const auto& summary : r.found.summaries) sum += summary.*member;
    return sum / static_cast<double>(r.found.summaries.size());
  };
  fmt::print("{} in {} on {} NPUs{}\n", counted(r.found.jobs.jobs.size(), "job"), readable_seconds(first.makespan),
             r.options.places.npus,
             r.found.summaries.size() > 1 ? fmt::format(", {} replications", r.found.summaries.size()) : "");
  fmt::print("utilisation {:.1f} %, blocked {:.1f} %, fragmentation {:.1f} %, rejected {:.2f} %\n",
             100 * mean(&cluster::Summary::utilisation), 100 * mean(&cluster::Summary::blocked),
             100 * mean(&cluster::Summary::fragmentation), 100 * mean(&cluster::Summary::rejected));
  fmt::print("{:<10} {:>7} {:>8} {:>8} {:>8} {:>8} {:>6} {:>7} {:>5}\n", "class", "jobs", "wait", "P95", "JCT", "P95",
             "slow", "bounded", "stops");
  constexpr std::size_t most_classes = 12;
  for (std::size_t k = 0; k < std::min(most_classes, first.classes.size()) && first.classes.size() > 1; ++k)
    print_class(r.found.jobs.classes[k], first.classes[k]);
  print_class("all", first.all);
  if (r.options.rules.sharing == cluster::Sharing::simulate)
    fmt::print("{} and {} simulated\n", counted(r.found.sharing.placements, "placement"),
               counted(r.found.sharing.components.size(), "component"));
  double half_width = cluster::half_width_of_waits(r.found.jobs.jobs, r.found.schedule, r.options.warm_up);
  double wait = first.all.wait.mean;
  if (r.found.summaries.size() > 1) {
    std::vector<double> waits;
    for (const auto& summary : r.found.summaries) waits.push_back(summary.all.wait.mean);
    const auto found = campaign::estimate(waits);
    wait = found.mean;
    half_width = found.half_width;
  }
  const std::uint64_t count = first.all.jobs;
  if (r.options.site.running > 0 && count > 0)
    fmt::print("energy {:.4g} MWh, {:.4g} kWh a job; highest power {:.4g} MW\n", first.energy / 3.6e9,
               first.all.energy / 3.6e6 / static_cast<double>(count), first.peak_power / 1e6);
  if (r.usd_per_npu_hour && count > 0) {
    double hours = 0;
    for (const auto& job : r.found.schedule.jobs) hours += campaign::seconds(job.occupied) / 3600 * job.npus;
    fmt::print("price of the NPUs {:.4g} USD a job\n",
               hours * *r.usd_per_npu_hour / static_cast<double>(r.found.schedule.jobs.size()));
  }
  if (half_width > 0) fmt::print("mean wait {} +- {} (95 %)\n", readable_seconds(wait), readable_seconds(half_width));
}

}  // namespace orrery::study
