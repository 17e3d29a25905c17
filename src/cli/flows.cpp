#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/base/error.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/flow_file.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/show/flow_run.hpp"
#include "subcommands.hpp"

namespace orrery::cli {
namespace {

using network::FlowResults;

/// Throws Error (stuck) that names the first flows that did not end.
void require_all_over(const network::FlowScenario& scenario, const FlowResults& results) {
  constexpr std::size_t most_named = 5;
  std::uint64_t num_left = 0;
  std::string named;
  for (std::size_t i = 0; i < results.flows.size(); ++i) {
    if (results.flows[i].received.ps() >= 0) continue;
    if (num_left++ >= most_named) continue;
    named += fmt::format("{}#{} ({} to {})", named.empty() ? "" : ", ", i, scenario.flows[i].source,
                         scenario.flows[i].destination);
  }
  if (num_left == 0) return;
  throw Error(ErrorCode::stuck,
              fmt::format("{} did not end: {}{}. Packets were lost that nobody sends again, or wait for ever. "
                          "system.network.packets.loss: selective sends lost packets again.",
                          counted(num_left, "flow"), named, num_left > most_named ? ", ..." : ""));
}

}  // namespace

void flows(const config::FlowsCommand& command, parallel::Communicator& world) {
  config::FlowFile read = run::agreed(world, [&] {
    if (command.in_scheduling_order && world.size() > 1)
      throw Error(ErrorCode::usage, {.key = "--scheduling-order"},
                  fmt::format("found {}", counted(static_cast<std::uint64_t>(world.size()), "rank")), "one rank");
    if (world.is_root() && !command.json.empty()) check_output(command.json, command.force);
    return config::read_flows(command.file, command.overrides);
  });
  if (world.is_root())
    for (const std::string& warning : read.warnings) spdlog::warn("{}", warning);
  network::FlowScenario& scenario = read.scenario;
  scenario.file = command.file.string();
  scenario.recording = {.flows = command.links, .queue_bins = command.queue_bins};
  const auto order = command.in_scheduling_order ? network::EventOrder::by_scheduling : network::EventOrder::by_system;
  const FlowResults results = network::run_flows(scenario, world, order);
  world.agree([&] {
    if (!world.is_root()) return;
    show::print_flow_run(scenario, results);
    if (!command.json.empty()) show::write_flow_run(command.json, scenario, results);
    require_all_over(scenario, results);
  });
}

}  // namespace orrery::cli
