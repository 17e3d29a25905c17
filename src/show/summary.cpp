#include "orrery/show/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/base/utf8.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/results/breakdown.hpp"
#include "orrery/results/kernel_figures.hpp"
#include "orrery/results/metric_text.hpp"
#include "orrery/run/progress.hpp"

namespace orrery::show {
namespace {

std::string bytes_text(double bytes) { return bytes < 1000 ? fmt::format("{} B", bytes) : with_prefix(bytes) + "B"; }

constexpr int share_decimals = 2;      ///< decimals of a share in percent
constexpr double least_share = 0.005;  // percent; what is less is left out

void print_training(const results::Metrics& metrics) {
  std::vector<std::string> parts;
  const auto& rates = metrics.training;
  if (rates.time_to_first_token)
    parts.push_back(fmt::format("first token after {:.4g} ms", 1e3 * *rates.time_to_first_token));
  if (rates.time_per_output_token)
    parts.push_back(fmt::format("{:.4g} ms per token{}", 1e3 * *rates.time_per_output_token,
                                rates.first_output_token
                                    ? fmt::format(" ({:.4g} ms at first, {:.4g} ms at last)",
                                                  1e3 * *rates.first_output_token, 1e3 * *rates.last_output_token)
                                    : ""));
  if (rates.request_time) parts.push_back(fmt::format("request {:.4g} s", *rates.request_time));
  if (rates.tokens_per_second)
    parts.push_back(fmt::format("{} tokens/s, {} tokens/s/NPU", with_prefix(*rates.tokens_per_second),
                                with_prefix(*rates.tokens_per_second_per_npu)));
  else if (rates.samples_per_second)
    parts.push_back(fmt::format("{} samples/s", with_prefix(*rates.samples_per_second)));
  if (rates.model_flops_utilisation)
    parts.push_back(fmt::format("MFU {}, HFU {}{}", results::percent(*rates.model_flops_utilisation, share_decimals),
                                results::percent(*rates.hardware_flops_utilisation, share_decimals),
                                rates.masks_scores ? " (masked scores of attention do not count)" : ""));
  const bool is_inference = rates.time_to_first_token || rates.time_per_output_token;
  if (!parts.empty()) fmt::print("{}: {}\n", is_inference ? "inference" : "training", fmt::join(parts, "; "));
  if (metrics.bubble)
    fmt::print("pipeline: NPUs receive or stand idle for {} of the step; the ideal bubble is {} of the passes alone\n",
               results::percent(metrics.bubble->measured, share_decimals),
               results::percent(metrics.bubble->ideal, share_decimals));
}

/// Prints what the system costs and what a step costs on it, as far as it has prices.
void print_cost(const cost::Hardware& hardware, const results::CostFigures& cost) {
  std::vector<std::string> parts;
  for (const auto& [name, price] : hardware.items) parts.push_back(fmt::format("{} {:.0f}", cited(name), price));
  if (cost.step.capex) fmt::print("price: {:.0f} USD ({})\n", *cost.step.capex, fmt::join(parts, ", "));
  parts.clear();
  if (cost.step.price) parts.push_back(fmt::format("{:.4g} USD", *cost.step.price));
  if (cost.step.energy)
    parts.push_back(fmt::format("{}J at {}W", with_prefix(*cost.step.energy), with_prefix(*cost.step.power)));
  if (cost.tokens_per_usd) parts.push_back(fmt::format("{} tokens/USD", with_prefix(*cost.tokens_per_usd)));
  if (!parts.empty()) fmt::print("cost of a step: {}\n", fmt::join(parts, ", "));
}

/// The summary names this many kinds of collectives; the results have all of them.
constexpr std::size_t most_collectives = 4;

void print_traffic(const results::Metrics& metrics, const results::NetworkDescription& network, bool replay_only) {
  const auto& sharers = network.sharers;
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < metrics.bytes_per_step.size(); ++d)
    parts.push_back(fmt::format(
        "dimension {} {}{}{}", d, bytes_text(static_cast<double>(metrics.bytes_per_step[d])),
        network.lies_on_graph ? "" : fmt::format(", {} busy", results::percent(metrics.utilisation[d], share_decimals)),
        d < sharers.size() && sharers[d] > 1 ? fmt::format(" (collectives have 1/{} of its bandwidth each)", sharers[d])
                                             : ""));
  fmt::print("sent in a step: {}\n", fmt::join(parts, ", "));
  auto collectives = metrics.collectives;
  std::ranges::stable_sort(collectives, std::greater(),
                           [](const auto& row) { return row.time * row.members; });  // that NPUs were in them
  const std::size_t more = collectives.size() - std::min(collectives.size(), most_collectives);
  collectives.resize(collectives.size() - more);
  parts.clear();
  for (const auto& row : collectives)
    parts.push_back(fmt::format("{} of {} {}/s", collective::name(static_cast<collective::Kind>(row.kind)),
                                counted(row.members, "NPU"), bytes_text(row.bus_bandwidth)));
  if (more > 0) parts.push_back(fmt::format("{} more in /metrics/collectives", more));
  if (replay_only) parts = {"not known, as a replay takes the nodes of collectives one by one"};
  if (!parts.empty()) fmt::print("bus bandwidth: {}\n", fmt::join(parts, ", "));
}

constexpr std::size_t most_library_effects = 3;
constexpr double least_bound = 0.05;   ///< share of the exposed time of collectives; what is less is left out
constexpr double least_told = 0.0005;  ///< share of the step time; what is less is left out

/// Prints how far the times of a library are to be trusted, and what binds them.
void print_library(const results::LibraryEffects& effects) {
  std::vector<std::pair<double, std::size_t>> saved;
  for (std::size_t d = 0; d < effects.more_bandwidth.size(); ++d)
    if (effects.more_bandwidth[d] >= least_told) saved.emplace_back(effects.more_bandwidth[d], d);
  std::ranges::stable_sort(saved, std::greater(), &std::pair<double, std::size_t>::first);
  if (saved.size() > most_library_effects) saved.resize(most_library_effects);
  std::vector<std::string> parts, bounds;
  for (const auto& [share, d] : saved)
    parts.push_back(fmt::format("{} in dimension {}", results::percent(share, share_decimals), d));
  for (const auto& [name, share] : effects.bounds)
    if (share >= least_bound && bounds.size() < most_library_effects)
      bounds.push_back(fmt::format("{} {:.0f} %", name, 100 * share));
  if (bounds.empty()) return;  // none is exposed
  fmt::print(
      "library: standard error of the step {}; exposed collectives are bound by {}; 10 % more bandwidth saves "
      "{}\n",
      results::percent(effects.error, share_decimals), fmt::join(bounds, ", "),
      parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", ")));
}

/// Prints the peak of local memory, if traces list tensors.
void print_local_memory(const results::NpuRecords& npus, Bytes size) {
  const auto& most = *std::ranges::max_element(npus.distinct(), {}, &npu::NpuRecord::peak_local_memory);
  if (most.peak_local_memory == Bytes(0)) return;
  const auto text = [size](Bytes bytes) { return size_text(bytes.count(), size.count()); };
  std::string of_size;
  if (size > Bytes(0)) of_size = fmt::format(" of {}", text(size));
  if (const std::uint64_t exceed = npus_beyond(npus, size); size > Bytes(0) && exceed > 0)
    of_size += fmt::format("; {} of {} exceed it", exceed, counted(npus.size(), "NPU"));
  fmt::print("local memory: NPU {} needs most, {} at {}{}\n", most.npu.value(), text(most.peak_local_memory),
             readable(most.peak_local_memory_time), of_size);
}

/// Prints where the time goes: of all NPUs, and of those that finish last and first.
void print_breakdown(const results::Gathered& all, Time end) {
  const auto [first, first_npu] = all.npus.least(&npu::NpuRecord::finish);
  const auto [last, last_npu] = all.npus.most(&npu::NpuRecord::finish);
  const auto mean = results::mean_breakdown(all.npus, end);
  const auto of_last = results::breakdown_of(last, end), of_first = results::breakdown_of(first, end);
  const auto share = [end](Time time) { return 100 * static_cast<double>(time.ps()) / static_cast<double>(end.ps()); };
  fmt::print("{:<12}{:>10}  {:>20}  {:>20}\n", "time", "all NPUs", fmt::format("last: NPU {}", last_npu.value()),
             fmt::format("first: NPU {}", first_npu.value()));
  for (std::size_t part = 0; part < results::num_breakdown_parts; ++part) {
    const double of_all = 100 * mean[part], late = share(of_last[part]), early = share(of_first[part]);
    if (std::max({of_all, late, early}) < least_share) continue;
    fmt::print("  {:<10}{:>8.2f} %  {:>18.2f} %  {:>18.2f} %\n", results::breakdown_name(part), of_all, late, early);
  }
  fmt::print("  {:<10}{:>10}  {:>20}  {:>20}\n", "finish", "", readable(last.finish), readable(first.finish));
}

/// Returns "compute 80.55 %, data 19.45 %": the parts of a time that are worth telling.
std::string parts_text(const results::Breakdown& parts, Time whole) {
  std::vector<std::string> texts;
  for (std::size_t part = 0; part < results::num_breakdown_parts; ++part)
    if (const double share = static_cast<double>(parts[part].ps()) / static_cast<double>(whole.ps());
        100 * share >= least_share)
      texts.push_back(fmt::format("{} {}", results::breakdown_name(part), results::percent(share, share_decimals)));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Prints what the end of the run waited for, if there is a timeline.
void print_path(const results::PathFigures& path) {
  if (path.longest.empty()) return;
  fmt::print("critical path: {}; its longest segments:\n", parts_text(path.parts, path.length));
  for (const auto& stretch : path.longest)
    fmt::print("  {:>12} from {:>12}  NPU {:<7} {}; longest: {}\n", readable(stretch.finish - stretch.start),
               readable(stretch.start), stretch.npu.value(), parts_text(stretch.parts, stretch.finish - stretch.start),
               cited(stretch.longest_node));
}

constexpr std::size_t most_hot_links = 3;

std::string link_text(const network::LinkRecord& link, const std::vector<topology::Fabric::Switch>& switches) {
  const auto device = [&](std::int64_t number) {
    return number < 0 ? switches[static_cast<std::size_t>(-1 - number)].name : fmt::format("NPU {}", number);
  };
  return fmt::format("{} to {} (dimension {})", device(link.from), device(link.to), link.dimension);
}

/// Prints the links that were busy longest; of equal ones those with the lowest numbers.
void print_links(std::vector<network::LinkRecord> links, const std::vector<topology::Fabric::Switch>& switches,
                 Time finish) {
  const auto busy = [](const network::LinkRecord& link) { return link.statistics.busy; };
  std::ranges::stable_sort(links, std::greater(), busy);
  if (links.size() > most_hot_links) links.resize(most_hot_links);
  for (const auto& link : links) {
    const auto& done = link.statistics;
    fmt::print(
        "hot link {}: {}, busy {}, a message waited {} in the mean, {} at a time at most\n", link_text(link, switches),
        bytes_text(static_cast<double>(done.bytes.count())),
        results::percent(static_cast<double>(done.busy.ps()) / std::max<double>(static_cast<double>(finish.ps()), 1),
                         share_decimals),
        readable(Time::from_ps(done.queueing.ps() / static_cast<std::int64_t>(done.messages))), done.peak_queue);
  }
}

void print_step(const results::Gathered& all, Time finish) {
  const bool is_mean = all.metrics && all.metrics->iterations > 1;
  fmt::print(
      "step time {} ({}{})\n", readable(is_mean ? all.metrics->step_time : finish), counted(all.npus.size(), "NPU"),
      is_mean ? fmt::format("; the mean of {} in {}", counted(all.metrics->iterations, "iteration"), readable(finish))
              : "");
}

/// Prints a line for each job, and how much longer it took than alone, if that is known.
void print_jobs(const std::vector<results::JobFigures>& figures, const std::vector<results::JobDescription>& jobs) {
  if (jobs.empty()) return;
  constexpr std::size_t least_width = 8, most_width = 30;
  std::vector<std::string> names;
  std::size_t width = least_width;
  for (const auto& job : jobs) {
    names.push_back(cited(job.name, most_width));
    width = std::max(width, names.back().size());
  }
  const bool compares = std::ranges::all_of(figures, [](const auto& job) { return job.alone.has_value(); });
  fmt::print("{:<{}}  {:>7}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}{}\n", "job", width, "NPUs", "start", "finish",
             "run time", "compute", "exposed", compares ? fmt::format("  {:>12}  {:>8}", "alone", "slowdown") : "");
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const auto& job = figures[j];
    fmt::print("{:<{}}  {:>7}  {:>12}  {:>12}  {:>12}  {:>12}  {:>12}{}\n", names[j], width, job.npus,
               readable(job.start), readable(job.finish), readable(job.run_time), readable(job.compute),
               readable(job.exposed_communication),
               compares ? fmt::format("  {:>12}  {:>8.4f}", readable(*job.alone), job.slowdown()) : "");
  }
}

/// Prints what the step time of several repetitions is.
void print_repetitions(const results::RunDescription& run) {
  if (run.repetitions.size() < 2) return;
  const auto figures = results::figures_of(run.repetitions);
  const auto text = [&](double ps) {
    return readable(Time::from_ps(std::llround(ps / static_cast<double>(run.iterations))));
  };
  fmt::print(
      "step time of {} (seeds {} to {}): mean {}, 95 % confidence interval {} to {}, standard deviation {}, "
      "least {}, most {}; all else is of the first\n",
      counted(run.repetitions.size(), "repetition"), run.repetitions.front().seed, run.repetitions.back().seed,
      text(figures.mean), text(figures.low), text(figures.high), text(figures.deviation), text(figures.least),
      text(figures.most));
}

}  // namespace

std::uint64_t npus_beyond(const results::NpuRecords& npus, Bytes size) {
  std::uint64_t beyond = 0;
  npus.for_each([&](const npu::NpuRecord& npu, std::uint64_t count) {
    if (npu.peak_local_memory > size) beyond += count;
  });
  return beyond;
}

std::string interval_text(const results::Metrics& metrics) {
  const double step = static_cast<double>(metrics.step_time.ps()), factor = metrics.certainty->factor();
  const auto end = [](double ps) { return readable(Time::from_ps(std::llround(ps))); };
  return fmt::format("80 % interval {} to {} ({})", end(step / factor), end(step * factor),
                     cited(metrics.certainty->basis));
}

void print_summary(const results::Gathered& all, const results::RunDescription& run,
                   const config::Configuration& configuration) {
  const Time end = all.npus.most(&npu::NpuRecord::finish).first.finish;
  print_step(all, end);
  if (all.metrics && all.metrics->certainty) fmt::print("{}\n", interval_text(*all.metrics));
  print_repetitions(run);
  print_jobs(all.jobs, run.jobs);
  if (all.metrics) {
    print_training(*all.metrics);
    print_breakdown(all, end);
  }
  print_path(all.path);
  if (all.metrics) print_traffic(*all.metrics, run.network, configuration.execution.replay_only);
  if (all.metrics && all.metrics->library) print_library(*all.metrics->library);
  if (all.metrics && run.hardware) print_cost(*run.hardware, all.metrics->cost);
  print_local_memory(all.npus, configuration.execution.room());
  print_links(all.links, run.network.switches, end);
  if (all.metrics)
    for (const std::string& hint : all.metrics->hints) fmt::print("hint: {}\n", hint);
  const auto total = results::kernel_figures(all.ranks).total;
  const auto num_ranks = all.ranks.size();
  const double events = static_cast<double>(total.events);
  fmt::print("{} events in {:.3f} s on {} ({:.2f} M events/s), {} data and {} null messages, largest rank {:.0f} MiB\n",
             total.events, run.wall_time, counted(num_ranks, "rank"), events / std::max(run.wall_time, 1e-9) * 1e-6,
             total.data_messages, total.null_messages,
             static_cast<double>(total.peak_memory_bytes) / (1024.0 * 1024.0));
  fmt::print("results in {}\n", printable(all.file.string()));
}

void print_npus(const results::NpuRecords& npus) {
  for (std::size_t i = 0; i < npus.size(); ++i) {
    const npu::NpuRecord& npu = npus[i];
    fmt::print("sys[{}] finished, {} cycles, exposed communication {} cycles.\n", i, npu.finish.ps() / 1000,
               (npu.exposed_communication() + npu.exposed_memory + npu.idle).ps() / 1000);
  }
}

}  // namespace orrery::show
