#include "serve.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/job_context.hpp"
#include "orrery/base/text.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/results/results.hpp"
#include "orrery/results/serving.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/run/requests.hpp"
#include "orrery/serving/metrics.hpp"

namespace orrery::cli {
namespace {

std::string time_text(double ps) { return std::isnan(ps) ? "-" : readable(Time::from_ps(std::llround(ps))); }

void print_times(const char* name, const serving::TimeFigures& of) {
  fmt::print("{:<8} {:>12} {:>12} {:>12} {:>12} {:>12}\n", name, time_text(of.mean), time_text(of.p50),
             time_text(of.p90), time_text(of.p95), time_text(of.p99));
}

/// Prints at most 20 lines.
void print_serving_summary(const config::ServingConfiguration& configuration, const serving::Scenario& scenario,
                           const serving::Results& results, const serving::Metrics& m,
                           const std::filesystem::path& file) {
  const serving::Description& d = configuration.serving;
  fmt::print("{} on {} of {}, {} simulated in {:.2f} s\n", counted(scenario.requests.size(), "request"),
             counted(results.instances.size(), "instance"), counted(m.npus, "NPU"), readable(results.end),
             results.wall_seconds);
  fmt::print("{:<8} {:>12} {:>12} {:>12} {:>12} {:>12}\n", "", "mean", "p50", "p90", "p95", "p99");
  print_times("TTFT", m.ttft);
  print_times("TPOT", m.tpot);
  print_times("ITL", m.itl);
  print_times("latency", m.latency);
  fmt::print("throughput: {:.4g} requests/s, {:.5g} output tokens/s, {:.4g} of them for each NPU\n", m.requests_per_s,
             m.output_tokens_per_s, m.output_tokens_per_s / m.npus);
  if (d.slo.any())
    fmt::print(
        "SLO: {:.1f} % of requests meet it (target {:.4g} %: {}), goodput {:.4g} requests/s, {:.4g} for each NPU\n",
        100 * m.slo_attainment, 100 * d.slo.share, m.slo_attainment < d.slo.share ? "missed" : "met", m.goodput,
        m.goodput / m.npus);
  fmt::print("KV cache: {:.1f} % in use on the mean, {}; {:.1f} requests run and {:.1f} wait at an instance\n",
             100 * m.kv_use_mean, counted(m.preemptions, "preemption"), m.running_mean, m.waiting_mean);
  if (m.prefix_hit_share > 0)
    fmt::print("prefix cache: {:.1f} % of the prompts' tokens were found\n", 100 * m.prefix_hit_share);
  if (m.transferred_tokens > 0)
    fmt::print("KV transfers: {}B\n", with_prefix(static_cast<double>(m.transferred_tokens) *
                                                  static_cast<double>(scenario.kv_bytes_per_token)));
  for (const serving::JobEnd& job : results.jobs)
    fmt::print("job {} on {}: {} to {}, {}\n", job.name, counted(job.npus, "NPU"), readable(job.start),
               readable(job.finish), readable(job.finish - job.start));
  if (!file.empty()) fmt::print("results: {}\n", file.string());
}

/// Returns a warning for each table beyond whose end a step of any rank lies, with the largest size. On rank 0;
/// collective.
std::vector<std::string> warnings_of_tables(const serving::Scenario& scenario, parallel::Communicator& world) {
  parallel::Packer packer;
  const serving::StepModel* told = nullptr;  // instances of an entry share one
  for (const auto& instance : scenario.instances) {
    if (instance.cost.get() == told) continue;
    told = instance.cost.get();
    for (const serving::BeyondTable& one : told->beyond_tables()) {
      packer.put_text(one.before);
      packer.put(one.asked);
      packer.put_text(one.after);
    }
  }
  const auto bytes = packer.take();
  const auto all = world.gather(std::span<const std::byte>(bytes), Rank(0));
  std::map<std::pair<std::string, std::string>, double> most;
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    std::string before = unpacker.get_text();
    const auto asked = unpacker.get<double>();
    double& known = most[{std::move(before), unpacker.get_text()}];
    known = std::max(known, asked);
  }
  std::vector<std::string> warnings;
  for (const auto& [words, asked] : most)
    warnings.push_back(fmt::format("{}{:.0f}{}", words.first, asked, words.second));
  return warnings;
}

}  // namespace

void serve(const config::ServingConfiguration& configuration, const run::RunOptions& options,
           parallel::Communicator& world) {
  const config::RunOptions& run = configuration.system.run;
  world.agree([&] {
    if (world.is_root()) results::check_output(run.output, run.force);
  });
  const serving::Scenario scenario = run::agreed(world, [&] { return run::make_scenario(configuration); });
  serving::Control control{.watchdog_seconds = run.watchdog_s, .stop_requested = {}, .progress = {}};
  if (JobContext* const job = JobContext::current())
    control.stop_requested = [job] { return job->stop.is_requested(); };
  const serving::Results results = run::simulate_requests(configuration, scenario, control, world);
  serving::Metrics metrics;
  world.agree([&] {
    if (world.is_root()) metrics = serving::metrics_of(configuration.serving, scenario, results);
  });
  const auto file = results::write_serving(run.output,
                                           {.description = configuration.serving,
                                            .scenario = scenario,
                                            .results = results,
                                            .metrics = metrics,
                                            .inputs = configuration.system.inputs,
                                            .command_line = options.command_line,
                                            .force = run.force},
                                           world);
  const std::vector<std::string> beyond = warnings_of_tables(scenario, world);
  if (!world.is_root()) return;
  for (const std::string& warning : configuration.system.warnings) spdlog::warn("{}", warning);
  for (const std::string& warning : beyond) spdlog::warn("{}", warning);
  if (!run.quiet) print_serving_summary(configuration, scenario, results, metrics, file);
}

}  // namespace orrery::cli
