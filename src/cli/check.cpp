#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/serving.hpp"
#include "orrery/model/reduction_groups.hpp"
#include "orrery/network/model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/run/checkpoints.hpp"
#include "orrery/run/preparation.hpp"
#include "orrery/run/requests.hpp"
#include "orrery/serving/description.hpp"
#include "orrery/trace/lone_file.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "options.hpp"

namespace orrery::cli {
namespace {

/// Checks a trace without its system. Throws what is wrong with it.
void check_trace(const config::Inputs& inputs) {
  if (!inputs.flags.empty() || !inputs.overrides.empty())
    throw Error(ErrorCode::usage, {.file = inputs.file.string()},
                "the file is a trace, and options of a configuration are given", "a trace alone, or CONFIG.yaml",
                "A configuration whose workload.traces names the file takes them.");
  const trace::LoneFile file = trace::read_lone_file(inputs.file, {});
  std::uint64_t num_nodes = 0;
  for (const trace::LoneTrace& lone : file.traces) num_nodes += lone.trace.graph->num_nodes();
  for (const auto& [kind, entry] : file.store.notices().entries())
    if (!kind.starts_with("streams-")) spdlog::warn("{}", entry.text);
  fmt::print("a trace of {} ({}), {}: nothing wrong was found in the file alone\n", counted(file.traces.size(), "NPU"),
             file.store.format(file.traces.front().trace), counted(num_nodes, "node"));
  fmt::print("A configuration whose workload.traces names it is checked with its system: orrery check CONFIG.yaml\n");
}

bool is_trace(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error) && trace::format_of(path).has_value();
}

void print_checkpoint_size(const run::Preparation& preparation, const config::Configuration& configuration) {
  const std::uint64_t size = run::checkpoint_size(preparation, configuration);
  const auto& options = configuration.execution;
  const bool has_packets = options.goes_over_links() && options.network.model->sends_packets;
  fmt::print("a checkpoint takes about {}{}\n", size_text(size, size),
             has_packets ? ", and what the packets under way take" : "");
}

void check_serving(const config::Inputs& inputs) {
  const config::ServingConfiguration configuration = config::read_serving(inputs);
  for (const auto& warning : configuration.system.warnings) spdlog::warn("{}", warning);
  const serving::Scenario scenario = run::make_scenario(configuration);
  fmt::print("{}, {}: nothing wrong was found\n", counted(scenario.requests.size(), "request"),
             counted(scenario.instances.size(), "instance"));
}

int check(const CheckCommand& command) {
  if (is_trace(command.inputs.file)) {
    check_trace(command.inputs);
    return 0;
  }
  if (config::is_serving(command.inputs)) {
    check_serving(command.inputs);
    return 0;
  }
  auto [configuration, faults] = config::examine(command.inputs);
  if (configuration) {
    for (const auto& warning : configuration->warnings) spdlog::warn("{}", warning);
    configuration->run.partition = {};  // of a run on several ranks, which this is not
    const auto world = parallel::make_serial();
    run::Preparation preparation(*configuration, *world, faults);
    for (const auto& [kind, entry] : preparation.notices().entries())
      spdlog::warn("{} (NPU {})", entry.text, entry.npu);
    if (faults.empty())  // the network of a run has its own conditions
      faults.attempt([&] {
        const npu::RunContext run = preparation.run_context();
        network::make_network(run.topology(), model::with_reduction_groups(run));
      });
    if (faults.empty() && !configuration->run.checkpoint.empty()) print_checkpoint_size(preparation, *configuration);
    if (faults.empty())
      fmt::print("{}, {} of {}, {}: nothing wrong was found\n", counted(preparation.num_npus(), "NPU"),
                 counted(preparation.num_nodes(), "node"),
                 counted(preparation.store().num_structures(), "distinct structure"),
                 counted(preparation.groups().size(), "group"));
  }
  if (faults.empty()) return 0;
  for (const auto& text : faults.texts()) spdlog::error("{}", text);
  return static_cast<int>(faults.code());
}

const Subcommand& check_subcommand() {
  static const Subcommand command{
      "check", "Find everything that is wrong with a run before it is started.", "CONFIG.yaml",
      "  orrery check configs/llm-64.yaml",
      key_groups(config::Taker::check) + std::vector{own_inputs(), astra_sim_inputs(config::Taker::check)}};
  return command;
}

CheckCommand make_check(const Arguments& arguments) {
  CheckCommand command{read_inputs(arguments, "check", false)};
  read_flags_of(arguments, config::Taker::check, "check", command.inputs);
  return command;
}

}  // namespace

extern const CommandEntry check_entry;
const CommandEntry check_entry{check_subcommand,
                               [](const Arguments& arguments) { return once(make_check(arguments), check); }};

}  // namespace orrery::cli
