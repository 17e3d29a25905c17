#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/parallel/raise_faults.hpp"
#include "orrery/partition/quality.hpp"
#include "orrery/partition/strategy.hpp"
#include "orrery/run/preparation.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "options.hpp"

namespace orrery::cli {
namespace {

void write_map(const partition::Partition& partition, const std::filesystem::path& path) {
  std::string map;
  for (const Rank rank : partition.ranks()) map += fmt::format("{}\n", rank.value());
  PartialFile file(path);
  file.write(map);
  file.commit();
}

/// Returns whether the configuration names traces that exist. Throws Error if the strategy needs traces and there are
/// none.
bool has_workload(const config::Configuration& configuration, const config::Workload& workload) {
  const bool needed = configuration.run.partition.strategy().needs_traces;
  if (workload.generated) return true;
  if (workload.traces.empty()) {
    if (needed)
      throw Error(ErrorCode::bad_input, {.key = "workload.traces"}, "none", "traces",
                  "METIS cuts the graph of which NPUs communicate, which is in the traces.");
    return false;
  }
  std::error_code failure;
  return needed || std::filesystem::exists(workload.trace_of(NpuId(0)), failure);
}

/// The same for all workloads of the system.
bool has_workload(const config::Configuration& configuration) {
  return std::ranges::all_of(configuration.workloads(),
                             [&](const auto* workload) { return has_workload(configuration, *workload); });
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void print(const partition::Quality& quality) {
  fmt::print("cut: {} of {} bytes ({:.1f} %), {} of {} communicators, {} of {} messages\n", quality.bytes,
             quality.total_bytes, share(quality.bytes, quality.total_bytes), quality.groups, quality.total_groups,
             quality.messages, quality.total_messages);
  fmt::print("balance: {:.3f} (largest load of a rank over the mean; loads are nodes of traces)\n", quality.balance);
  fmt::print("lookahead: {}\n",
             quality.lookahead ? readable(*quality.lookahead) : "no limit, as nothing crosses the cut");
}

void print_without_workload(std::uint32_t num_npus, const partition::Partition& partition) {
  const std::vector<std::uint64_t> equal(num_npus, 1);
  fmt::print("balance: {:.3f} (largest load of a rank over the mean; loads are NPUs)\n",
             partition::balance(equal, partition));
  fmt::print("cut and lookahead: unknown without the traces of the workload\n");
}

void partition(const PartitionCommand& command) {
  auto configuration = config::read(command.inputs);
  check_output(command.output, command.force);
  const auto options = configuration.run.partition;
  const bool with_workload = has_workload(configuration);
  configuration.run.partition = {};  // of this command itself, which is one rank
  const auto topology = configuration.topology();
  const auto world = parallel::make_serial();
  std::unique_ptr<run::Preparation> preparation;
  partition::CommunicationGraph graph;
  if (with_workload) {
    Faults faults;
    preparation = std::make_unique<run::Preparation>(configuration, *world, faults);
    parallel::raise_faults(faults, *world);
    graph = run::communication_graph(preparation->traces(), configuration, preparation->system(), *world);
  }
  const auto made = options.make({topology, command.ranks, &graph});
  write_map(made, command.output);
  fmt::print("{} on {} by {}: {}\n", counted(topology.num_npus(), "NPU"),
             counted(static_cast<std::uint64_t>(command.ranks), "rank"), options.text(), command.output.string());
  if (with_workload)
    print(partition::measure(preparation->run_context(), graph, made));
  else
    print_without_workload(topology.num_npus(), made);
}

const Subcommand& partition_subcommand() {
  static const Subcommand command{
      "partition",
      "Write a rank map, which MPI rank hosts which NPU, and print what it cuts.",
      "CONFIG.yaml",
      "  orrery partition configs/llm-64.yaml --ranks 4 --strategy metis --output llm-64.part.4",
      {{"Output",
        {{"ranks", "R", "number of ranks; needed"},
         key_option("run.partition", "strategy"),
         {"output", "FILE", "the rank map; needed"},
         {"force", "", "replace an existing file"}}},
       own_inputs(),
       astra_sim_inputs(config::Taker::partition)}};
  return command;
}

PartitionCommand make_partition(const Arguments& arguments) {
  PartitionCommand command;
  command.inputs = read_inputs(arguments, "partition", true);
  const std::string strategy = arguments.text("strategy").value_or("block");
  if (strategy.empty()) arguments.refuse("strategy", "a strategy or the name of a file");
  command.inputs.flags = {{"run.partition", strategy, "--strategy"}};
  needed(arguments, "partition", "ranks", "4");
  const auto ranks = arguments.count("ranks");
  if (!ranks || *ranks > 1U << 30U) arguments.refuse("ranks", "at most 2^30 ranks");
  command.ranks = static_cast<int>(*ranks);
  command.output = needed(arguments, "partition", "output", "partitions/map.4");
  command.force = arguments.flag("force").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry partition_entry;
const CommandEntry partition_entry{
    partition_subcommand, [](const Arguments& arguments) { return once(make_partition(arguments), partition); }};

}  // namespace orrery::cli
