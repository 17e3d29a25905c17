#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "agreed.hpp"
#include "checkpoints.hpp"
#include "collect.hpp"
#include "jobs_alone.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/read.hpp"
#include "orrery/network/packet_graph.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/results/results.hpp"
#include "orrery/topology/fabric.hpp"
#include "orrery/workload/figures.hpp"
#include "preparation.hpp"
#include "repeat.hpp"
#include "same_inputs.hpp"
#include "simulation.hpp"
#include "stop_guard.hpp"
#include "stop_request.hpp"
#include "subcommands.hpp"
#include "summary.hpp"

namespace orrery::app {
namespace {

void log_warnings(const config::Configuration& configuration, const Notices& notices) {
  for (const auto& warning : configuration.warnings) spdlog::warn("{}", warning);
  for (const auto& [kind, entry] : notices.entries())
    spdlog::warn("{} (NPU {}{})", entry.text, entry.npu,
                 entry.count > 1 ? fmt::format(" first, {} times in all", entry.count) : "");
}

/// Returns whether ranks host neighbours in a dimension.
bool joins_ranks(std::uint32_t d, const topology::Topology& topology, std::span<const Rank> rank_of) {
  for (std::uint32_t npu = 0; npu + topology.stride(d) < topology.num_npus(); ++npu)
    if (topology.coordinate(NpuId(npu + topology.stride(d)), d) > 0 &&
        rank_of[npu] != rank_of[npu + topology.stride(d)])
      return true;
  return false;
}

/// Warns of dimensions by which ranks have almost no lookahead: links without latency join them.
void warn_of_lookahead(const Preparation& preparation, const config::Configuration& configuration) {
  if (!configuration.execution.goes_over_links()) return;
  for (std::uint32_t d = 0; d < configuration.dimensions.size(); ++d)
    if (configuration.dimensions[d].latency_ns == 0 &&
        joins_ranks(d, preparation.system().topology(), preparation.traces().partition.ranks()))
      spdlog::warn(
          "dimension {} has no latency and joins NPUs of different ranks, which then wait for each other at almost "
          "every event: one rank may be faster, or a partition that keeps the dimension within ranks",
          d);
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

/// Ends all ranks with the exit code of a run that was stopped on request. Collective.
[[noreturn]] void end_interrupted(Time stopped_at, const std::filesystem::path& file,
                                  const std::filesystem::path& checkpoint, const std::filesystem::path& restart,
                                  parallel::Communicator& world) {
  parallel::Packer packer;
  packer.put_text(stop_reason());
  const std::vector<std::byte> mine = packer.take();
  const auto reasons = world.gather(std::span<const std::byte>(mine), Rank(0));
  world.agree([&] {
    if (!world.is_root()) return;
    std::string reason;
    for (parallel::Unpacker unpacker(reasons); reason.empty() && !unpacker.empty();) reason = unpacker.get_text();
    const std::string goes_on = !checkpoint.empty()
                                    ? fmt::format("with --restart={} goes on from there", checkpoint.string())
                                : !restart.empty() ? fmt::format("goes on from {} again", restart.string())
                                                   : "runs again from the start";
    throw Error(
        ErrorCode::interrupted,
        fmt::format("stopped by {} at simulated {}: {} holds what is known so far (status \"interrupted\"). The same "
                    "command {}, and replaces this file when it ends",
                    reason.empty() ? "a request" : reason, readable(stopped_at), file.string(), goes_on));
  });
  ensure_failed("a run that was stopped ends with an error", std::source_location::current());
}

/// Reads the configuration and checks that the results can be written. Its limits hold from the moment when this rank
/// has read them. Collective.
config::Configuration read_configuration(const config::Inputs& inputs, std::chrono::steady_clock::time_point start,
                                         parallel::Communicator& world) {
  auto configuration = agreed(world, [&] {
    auto result = config::read(inputs);
    stop_request(result.run.max_walltime_s, start);
    StopGuard::set_watchdog(result.run.watchdog_s);
    StopGuard::set_checkpoint(result.run.restart.string());
    return result;
  });
  require_same_configuration(configuration, world);
  world.agree([&] {
    if (world.is_root()) results::check_output(configuration.run.output, configuration.run.force);
  });
  return configuration;
}

/// Prints what the user asked for, on rank 0. `folding`: how the run was folded; empty if it was not.
void print_results(const results::Gathered& all, const results::RunDescription& description,
                   const config::Configuration& configuration, const std::string& folding,
                   const std::optional<workload::Figures>& figures) {
  if (configuration.run.print_npus) print_npus(all.npus);
  if (configuration.run.quiet) return;
  if (!folding.empty()) fmt::print("{}\n", folding);
  if (figures) fmt::print("{}", workload::report(*workload_of_all(configuration), *figures));
  print_summary(all, description, configuration);
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

}  // namespace

void run(const config::RunCommand& command, const std::string& command_line, parallel::Communicator& world) {
  const auto start = std::chrono::steady_clock::now();
  heed_signals();
  StopGuard::start(world.rank());
  config::Configuration configuration = read_configuration(command.inputs, start, world);
  const std::function<bool()> stop_requested = is_stop_requested;
  std::optional<Checkpoints> checkpoints;
  if (!configuration.run.checkpoint.empty() || !configuration.run.restart.empty())
    checkpoints.emplace(configuration, world);
  auto preparation = prepare(configuration, world);
  const std::chrono::duration<double> preparation_time = std::chrono::steady_clock::now() - start;
  if (checkpoints) checkpoints->prepare(*preparation);
  if (world.is_root()) {
    log_warnings(configuration, preparation->notices());
    warn_of_lookahead(*preparation, configuration);
  }
  auto simulation =
      simulate(*preparation, configuration.run, stop_requested, world, checkpoints ? &*checkpoints : nullptr);

  const auto mine = collect(*preparation, *simulation, world);
  auto description = describe(configuration, *preparation, *simulation, command_line);
  description.preparation_time = preparation_time.count();
  const std::string folding = preparation->folding_description();
  std::optional<workload::Figures> figures;
  const auto generation = generation_of(configuration, *simulation, world);
  if (const auto* const generated = workload_of_all(configuration); world.is_root() && generated != nullptr) {
    figures = workload::figures(*generated);
    description.step = training_step(configuration, *generated, *figures);
    description.step->generation = generation;
  }
  if (world.is_root()) description.groups = preparation->groups();
  if (world.is_root()) description.plant = plant_of(configuration);
  if (world.is_root() && description.network.has_links)
    description.network.switches = switches_of(configuration, preparation->system().topology());
  std::optional<Time> stopped_at = simulation->stopped_at();
  if (!stopped_at && configuration.perturbation.repetitions > 1) {
    description.repetitions = {repetition_of(*simulation, configuration, world)};
    simulation.reset();
    stopped_at = repeat(configuration, preparation, stop_requested, world, checkpoints ? &*checkpoints : nullptr,
                        description.repetitions);
    if (stopped_at) description.status = results::Status::interrupted;
  }
  simulation.reset();  // what is written has been collected
  preparation.reset();
  if (!stopped_at && configuration.workload.jobs_alone) {
    stopped_at = simulate_alone(configuration, stop_requested, world, description.jobs);
    if (stopped_at) description.status = results::Status::interrupted;
  }
  StopGuard::enter(RunPhase::writing);
  const auto all = results::write(configuration.run.output, description, mine, world);
  StopGuard::enter(RunPhase::ending);
  if (world.is_root() && all.file != configuration.run.output)
    spdlog::warn("{} has appeared during the run and is kept, because --force is not given: the results are in {}",
                 configuration.run.output.string(), all.file.string());
  if (stopped_at)
    end_interrupted(*stopped_at, all.file, checkpoints ? checkpoints->written() : "", configuration.run.restart, world);
  if (world.is_root()) print_results(all, description, configuration, folding, figures);
}

}  // namespace orrery::app
