#include "serve.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/job_context.hpp"
#include "orrery/base/text.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/parallel/raise_faults.hpp"
#include "orrery/results/results.hpp"
#include "orrery/results/serving.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/run/preparation.hpp"
#include "orrery/serving/metrics.hpp"

namespace orrery::app {
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

/// The network of the system, with the jobs beside the requests.
class SharedNetwork {
 public:
  /// Prepares what the ranks simulate of it. Collective. Throws as run::prepare does.
  SharedNetwork(const config::Configuration& configuration, const serving::Scenario& scenario,
                parallel::Communicator& world)
      : configuration_(configuration) {
    Faults faults;
    const auto fixed = hosts_of(scenario, world.size());
    preparation_ = std::make_unique<run::Preparation>(configuration, world, faults, false, fixed);
    parallel::raise_faults(faults, world);
    if (configuration.execution.goes_over_links()) rank_.emplace(preparation_->run_context());
  }

  serving::SystemNetwork for_transfers() {
    return {.delays = &preparation_->system().delays, .rank = rank_ ? &*rank_ : nullptr};
  }
  const Notices& notices() const { return preparation_->notices(); }

  /// Returns when the jobs have ended. Throws Error (stuck) on all ranks if one has not. Collective.
  std::vector<serving::JobEnd> ends_of_jobs(parallel::Communicator& world) const {
    std::vector<serving::JobEnd> ends;
    if (!rank_) return ends;
    auto unfinished = static_cast<std::int64_t>(rank_->npus().num_unfinished());
    world.sum(std::span(&unfinished, 1));
    if (unfinished > 0)
      throw Error(ErrorCode::stuck,
                  fmt::format("{} of the jobs beside serving do not finish", counted(unfinished, "NPU")));
    std::vector<std::int64_t> finish(preparation_->num_npus());
    for (const npu::NpuRecord& record : rank_->npus().records()) finish[record.npu.index()] = record.finish.ps();
    world.maximum(finish);
    for (const config::Job& job : configuration_.workload.jobs) {
      serving::JobEnd& end = ends.emplace_back(serving::JobEnd{job.name, job.start, job.start, job.num_npus()});
      for (const NpuId npu : job.npus()) end.finish = std::max(end.finish, Time::from_ps(finish[npu.index()]));
    }
    return ends;
  }

 private:
  static std::vector<run::HostedNpu> hosts_of(const serving::Scenario& scenario, int num_ranks) {
    const auto ranks = serving::ranks_of_instances(scenario, num_ranks);
    std::vector<run::HostedNpu> hosts;
    for (std::size_t i = 0; i < ranks.size(); ++i)
      for (const NpuId npu : scenario.instances[i].npus) hosts.emplace_back(npu, ranks[i]);
    return hosts;
  }

  const config::Configuration& configuration_;
  std::unique_ptr<run::Preparation> preparation_;
  std::optional<model::RankModel> rank_;
};

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

serving::Results simulate_requests(const config::ServingConfiguration& configuration, const serving::Scenario& scenario,
                                   const serving::Control& control, parallel::Communicator& world) {
  if (!configuration.serving.transfer.over_network) return serving::simulate(scenario, world, control);
  SharedNetwork network(configuration.system, scenario, world);
  serving::Results results = serving::simulate(scenario, world, control, network.for_transfers());
  results.jobs = network.ends_of_jobs(world);
  return results;
}

void serve(const config::ServingConfiguration& configuration, const run::RunOptions& options,
           parallel::Communicator& world) {
  const config::RunOptions& run = configuration.system.run;
  world.agree([&] {
    if (world.is_root()) results::check_output(run.output, run.force);
  });
  const serving::Scenario scenario = run::agreed(world, [&] { return serving::make_scenario(configuration.serving); });
  serving::Control control{.watchdog_seconds = run.watchdog_s, .stop_requested = {}, .progress = {}};
  if (JobContext* const job = JobContext::current())
    control.stop_requested = [job] { return job->stop.is_requested(); };
  const serving::Results results = simulate_requests(configuration, scenario, control, world);
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

}  // namespace orrery::app
