#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/cost/cost.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/run/collect.hpp"
#include "orrery/study/cluster_steps.hpp"
#include "orrery/study/cluster_tables.hpp"
#include "placed_errors.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "options.hpp"

namespace orrery::cli {
namespace {

constexpr double much_fragmentation = 0.1;  // share of the time above which a warning is given

void warn_of_cluster(const study::ClusterResults& results) {
  if (results.found.jobs.left_out > 0)
    spdlog::warn("{}: {} of 0 NPUs or without a length left out", results.options.arrivals.trace.string(),
                 counted(results.found.jobs.left_out, "row"));
  if (const double share = results.found.summaries.front().unplaced; share > much_fragmentation)
    spdlog::warn("the first of the queue could never be placed for {:.0f} % of the time: fragmentation", 100 * share);
}

/// Returns what simulates the steps of classes that have a workload; null if none has. Throws Error (bad_input) where
/// nothing can be simulated.
std::unique_ptr<cluster::StepLevel> step_level_of(const ClusterCommand& command, config::CampaignFile& file,
                                                  parallel::Communicator& world) {
  auto& options = file.configuration.cluster;
  const bool simulates = options.rules.sharing == cluster::Sharing::simulate;
  const bool has_workload =
      std::ranges::any_of(options.arrivals.classes, [](const cluster::JobClass& c) { return !c.workload.empty(); });
  if (!simulates && !has_workload) return nullptr;
  if (!file.has_system)
    throw Error(ErrorCode::bad_input, {.key = "system"}, "the section is missing",
                "the system on which steps are simulated");
  const auto& model = *file.configuration.execution.network.model;
  if (simulates && !model.simulates_links())
    throw Error(ErrorCode::bad_input, {.key = "cluster.sharing"},
                fmt::format("simulate needs congestion-aware or packet; in {} jobs never slow each other", model.name));
  if (const auto npus = topology::Topology(file.configuration.dimensions).num_npus(); options.places.npus != npus)
    throw Error(ErrorCode::bad_input, {.key = "cluster.npus"},
                fmt::format("found {}, but the system has {}", options.places.npus, npus), "the NPUs of the system");
  return study::make_step_level(command.inputs, file, options, world);
}

/// Returns USD for an hour of an NPU; nothing without prices.
std::optional<double> price_of_npu_hour(const config::CampaignFile& file) {
  if (!file.has_system) return {};
  const auto hardware = run::hardware_of(file.configuration);
  if (!hardware) return {};
  const auto price = cost::cost_of_step(*hardware, 3600, 1).price;
  return price ? std::optional(*price / hardware->num_npus) : std::nullopt;
}

void cluster(const ClusterCommand& command, const CommandJob& job) {
  const std::string& command_line = job.command_line;
  parallel::Communicator& world = job.world;
  std::string trace;
  auto file = run::agreed(world, [&] {
    if (world.is_root()) check_output(command.output, command.force);
    auto read = config::read_campaign(command.inputs);
    auto& options = read.configuration.cluster;
    const std::string name = command.inputs.file.string();
    if (!options.is_given())
      throw Error(ErrorCode::bad_input, {.file = name, .key = "cluster"}, "neither classes, jobs nor a trace is given",
                  "a section `cluster` with one of them", "See docs/cluster-time.md.");
    if (read.has_workload)
      throw Error(ErrorCode::bad_input, {.file = name, .key = "cluster"},
                  "workload, jobs and cluster exclude each other", "one of them");
    if (options.places.npus == 0 && read.has_system)
      options.places.npus = topology::Topology(read.configuration.dimensions).num_npus();
    if (options.arrivals.columns.empty()) options.arrivals.columns = "acme";
    if (!options.arrivals.trace.empty())
      trace = read_text(options.arrivals.trace, read.configuration.place_of("cluster.trace.file"));
    return read;
  });
  if (world.is_root())
    for (const std::string& warning : file.configuration.warnings) spdlog::warn("{}", warning);
  auto& options = file.configuration.cluster;
  const auto found = with_place(command.inputs.file, file.configuration, [&] {
    std::unique_ptr<cluster::StepLevel> steps;
    world.agree([&] { steps = step_level_of(command, file, world); });
    if (steps) cluster::find_steps(options, *steps);
    world.agree([&] { cluster::validate(options, command.overload); });
    return cluster::run(options, trace, {.places = true, .usage = true, .leaves = true}, steps.get(), world);
  });
  const study::ClusterResults results{file, options, found, price_of_npu_hour(file)};
  world.agree([&] {
    if (!world.is_root()) return;
    warn_of_cluster(results);
    study::print_cluster(results);
  });
  const auto content = world.is_root() ? study::cluster_file_of(results, command_line) : results::TableFile{};
  const auto written = results::write_tables(command.output, content, command.force, world);
  if (world.is_root()) fmt::print("results are in {}\n", written.string());
}

const Subcommand& cluster_subcommand() {
  static const Subcommand command{
      "cluster",
      "Simulate many jobs on one cluster over time: queues, schedulers, placement.",
      "CONFIG.yaml",
      "  orrery cluster examples/cluster/mix.yaml --output mix.h5\n"
      "  mpirun -np 2 orrery cluster CONFIG.yaml --set cluster.admission=easy --output easy.h5",
      {{"Output",
        {{"output", "FILE", "where to write what was found (default: cluster.h5)"},
         {"force", "", "replace files that exist"}}},
       {"Cluster", {{"overload", "", "simulate a load of 1 or more, under which the queue grows for ever"}}},
       own_inputs()}};
  return command;
}

ClusterCommand make_cluster(const Arguments& arguments) {
  auto command = options_of_section<ClusterCommand>(arguments, "cluster");
  command.overload = arguments.flag("overload").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry cluster_entry;
const CommandEntry cluster_entry{cluster_subcommand,
                                 [](const Arguments& arguments) { return as_job(make_cluster(arguments), cluster); }};

}  // namespace orrery::cli
