#include "orrery/run/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "capacity_warnings.hpp"
#include "orrery/base/archive.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/text.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/partition/short_links.hpp"
#include "orrery/run/checkpoints.hpp"
#include "orrery/run/collect.hpp"
#include "orrery/run/jobs_alone.hpp"
#include "orrery/run/preparation.hpp"
#include "orrery/run/simulation.hpp"
#include "orrery/topology/fabric.hpp"
#include "repeat.hpp"
#include "same_inputs.hpp"

namespace orrery::run {
namespace {

/// Returns the warnings about a configuration and its traces. On rank 0.
std::vector<std::string> warnings_of(const config::Configuration& configuration, const Notices& notices) {
  std::vector<std::string> warnings = configuration.warnings;
  for (const auto& [kind, entry] : notices.entries())
    warnings.push_back(fmt::format("{} (NPU {}{})", entry.text, entry.npu,
                                   entry.count > 1 ? fmt::format(" first, {} times in all", entry.count) : ""));
  return warnings;
}

/// Returns whether ranks host neighbours in a dimension.
bool joins_ranks(std::uint32_t d, const topology::Topology& topology, std::span<const Rank> rank_of) {
  for (std::uint32_t npu = 0; npu + topology.stride(d) < topology.num_npus(); ++npu)
    if (topology.coordinate(NpuId(npu + topology.stride(d)), d) > 0 &&
        rank_of[npu] != rank_of[npu + topology.stride(d)])
      return true;
  return false;
}

/// Says what to do if short links join ranks.
std::string advice_on_short_links(const topology::Topology& topology) {
  const std::uint32_t most = partition::joined_by_short_links(topology).count;
  if (most == 1) return "one rank may be faster";
  return fmt::format(
      "one rank may be faster, or a partition that keeps the dimension within ranks, as --partition block does for up "
      "to "
      "{}",
      counted(most, "rank"));
}

/// Adds warnings about dimensions by which ranks have almost no lookahead: short links join them.
void add_lookahead_warnings(const Preparation& preparation, const config::Configuration& configuration,
                            std::vector<std::string>& warnings) {
  if (!configuration.execution.goes_over_links()) return;
  const topology::Topology& topology = preparation.system().topology();
  for (std::uint32_t d = 0; d < configuration.dimensions.size(); ++d)
    if (partition::has_short_links(topology, d) && joins_ranks(d, topology, preparation.traces().partition.ranks())) {
      const double latency = configuration.dimensions[d].latency_ns * topology.links().least_latency(d);
      warnings.push_back(
          fmt::format("dimension {} has {} and joins NPUs of different ranks, which then wait for each other at almost "
                      "every event: "
                      "{}",
                      d, latency == 0 ? "no latency" : fmt::format("a latency of only {} ns", latency),
                      advice_on_short_links(topology)));
    }
}

/// Returns on rank 0 when the last of all NPUs reached each of so many milestones. Collective.
std::vector<Time> latest_milestones(std::vector<Time> mine, std::size_t count, parallel::Communicator& world) {
  mine.resize(count);
  const auto all = world.gather(std::span<const Time>(mine), Rank(0));
  std::vector<Time> latest(count);
  for (std::size_t i = 0; i < all.size(); ++i) latest[i % count] = std::max(latest[i % count], all[i]);
  return latest;
}

/// Returns on rank 0 how a request makes its tokens, and when they were there. Collective.
std::optional<results::Generation> generation_of(const config::Configuration& configuration,
                                                 const Simulation& simulation, parallel::Communicator& world) {
  const auto* const generated = workload_of_all(configuration);
  if (generated == nullptr) return {};
  const auto& parallel = generated->parallel;
  auto made = parallel.made_tokens();
  if (made.empty()) return {};
  auto ends = latest_milestones(simulation.model().npus().milestones(), made.size(), world);
  return results::Generation{parallel.pipeline.request.tokens, std::move(made), std::move(ends)};
}

/// Returns the switches that links lead to.
std::vector<topology::Fabric::Switch> switches_of(const config::Configuration& configuration,
                                                  const topology::Topology& topology) {
  const auto& given = configuration.execution.network.graph;
  if (!given) return topology::Fabric(topology).switches();
  std::vector<topology::Fabric::Switch> switches;
  for (std::uint32_t s = 0; s < given->graph.num_nodes() - given->graph.num_hosts(); ++s)
    switches.push_back({0, fmt::format("switch {}", s)});
  return switches;
}

/// Returns on all ranks the reason of a requested stop that the lowest rank with one knows. Collective.
std::string reason_of_stop(parallel::Communicator& world) {
  parallel::Packer packer;
  const JobContext* const job = JobContext::current();
  packer.put_text(job ? job->stop.reason() : "");
  const std::vector<std::byte> mine = packer.take();
  const auto reasons = world.all_gather(std::span<const std::byte>(mine));
  std::string reason;
  for (parallel::Unpacker unpacker(reasons); reason.empty() && !unpacker.empty();) reason = unpacker.get_text();
  return reason;
}

/// Adds to the description of a run what only rank 0 needs.
void complete_description(const config::Configuration& configuration, const Preparation& preparation,
                          std::optional<results::Generation> generation, RunDetails& details) {
  results::RunDescription& description = details.description;
  if (const auto* const generated = workload_of_all(configuration)) {
    details.figures = workload::figures(*generated);
    description.step = training_step(configuration, *generated, *details.figures);
    description.step->generation = std::move(generation);
  }
  description.groups = preparation.groups();
  description.hardware = hardware_of(configuration);
  if (description.network.has_links)
    description.network.switches = switches_of(configuration, preparation.system().topology());
}

/// Gives all ranks what rank 0 knows. Collective.
void share(RunResults& results, parallel::Communicator& world) {
  std::string file = results.file.string();
  const auto pass = [&](Archive& archive) { archive(file, results.finish_times, results.metrics, results.warnings); };
  Archive of_root;
  if (world.is_root()) pass(of_root);
  std::vector<std::byte> bytes = of_root.written();
  world.broadcast(bytes, Rank(0));
  Archive here{std::span<const std::byte>(bytes)};
  if (!world.is_root()) pass(here);
  results.file = file;
  for (const Time time : results.finish_times) results.simulated_time = std::max(results.simulated_time, time);
}

/// Gathers the results of all ranks and writes them, if they are to be written. Collective.
void write_results(const config::Configuration& configuration, bool writes_file, const results::RankResults& mine,
                   std::shared_ptr<RunDetails> details, RunResults& results, parallel::Communicator& world) {
  enter_phase(JobPhase::writing);
  const std::filesystem::path output = writes_file ? configuration.run.output : "";
  details->gathered = results::write(output, details->description, mine, world);
  enter_phase(JobPhase::ending);
  if (world.is_root()) {
    const results::Gathered& all = details->gathered;
    results.file = all.file;
    results.metrics = all.metrics;
    for (std::size_t i = 0; i < all.npus.size(); ++i) results.finish_times.push_back(all.npus[i].finish);
    if (all.file != output)
      job_log().warn(
          fmt::format("{} has appeared during the run and is kept, because --force is not given: the results are in {}",
                      output.string(), all.file.string()));
    for (std::string& warning : capacity_warnings(all, configuration)) {
      job_log().warn(warning);
      results.warnings.push_back(std::move(warning));
    }
    results.details = std::move(details);
  }
}

/// Simulates a run under the current job. Collective.
RunResults simulate_in_job(config::Configuration configuration, parallel::Communicator& world,
                           const RunOptions& options) {
  const std::function<bool()> stop_requested = [job = JobContext::current()] { return job->stop.is_requested(); };
  std::optional<Checkpoints> checkpoints;
  if (!configuration.run.checkpoint.empty() || !configuration.run.restart.empty())
    checkpoints.emplace(configuration, world);
  Checkpoints* const kept = checkpoints ? &*checkpoints : nullptr;
  auto preparation = prepare(configuration, world);
  const std::chrono::duration<double> preparation_time = std::chrono::steady_clock::now() - options.start;
  if (kept) kept->prepare(*preparation);
  RunResults results;
  if (world.is_root()) {
    results.warnings = warnings_of(configuration, preparation->notices());
    add_lookahead_warnings(*preparation, configuration, results.warnings);
    for (const std::string& warning : results.warnings) job_log().warn(warning);
  }
  auto simulation = simulate(*preparation, configuration.run, stop_requested, world, kept);

  auto details = std::make_shared<RunDetails>();
  const auto mine = collect(*preparation, *simulation, world);
  results::RunDescription& description = details->description;
  description = describe(configuration, *preparation, *simulation, options.command_line);
  description.preparation_time = preparation_time.count();
  details->folding = preparation->folding_description();
  auto generation = generation_of(configuration, *simulation, world);
  if (world.is_root()) complete_description(configuration, *preparation, std::move(generation), *details);
  results.stopped_at = simulation->stopped_at();
  if (!results.stopped_at && configuration.perturbation.repetitions > 1) {
    description.repetitions = {repetition_of(*simulation, configuration, world)};
    simulation.reset();
    results.stopped_at = repeat(configuration, preparation, stop_requested, world, kept, description.repetitions);
  }
  simulation.reset();  // what is written has been collected
  preparation.reset();
  if (!results.stopped_at && configuration.workload.jobs_alone)
    results.stopped_at = simulate_alone(configuration, stop_requested, world, description.jobs);
  if (results.stopped_at) {
    description.status = results::Status::interrupted;
    results.stop_reason = reason_of_stop(world);
    if (kept) results.checkpoint = kept->written();
  }
  write_results(configuration, options.writes_results, mine, std::move(details), results, world);
  share(results, world);
  return results;
}

}  // namespace

void set_limits(const config::RunOptions& options, std::chrono::steady_clock::time_point start) {
  JobContext* const job = JobContext::current();
  if (job == nullptr) return;
  job->stop.set_time_limit(options.max_walltime_s, start);
  job->set_watchdog(options.watchdog_s);
  job->set_checkpoint(options.restart.string());
}

RunResults simulate(const config::Configuration& configuration, parallel::Communicator& world,
                    const RunOptions& options) {
  std::optional<JobContext> own;
  if (JobContext::current() == nullptr) own.emplace();
  const JobContext::Scope scope(own ? *own : *JobContext::current());
  set_limits(configuration.run, options.start);
  require_same_configuration(configuration, world);
  if (options.writes_results)
    world.agree([&] {
      if (world.is_root()) results::check_output(configuration.run.output, configuration.run.force);
    });
  return simulate_in_job(configuration, world, options);
}

}  // namespace orrery::run
