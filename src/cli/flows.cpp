#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "orrery/base/error.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/flow_file.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/show/flow_run.hpp"

#include "command.hpp"
#include "config_options.hpp"
#include "option_values.hpp"
#include "options.hpp"
#include "orrery/network/packet_recording.hpp"

namespace orrery::cli {
namespace {

using network::FlowResults;
using network::FlowTimes;

/// Returns the number of the connection of a flow of TCP among those of its hosts, which flows take in turn as they
/// begin.
std::uint32_t connection_of(std::size_t number, const network::FlowScenario& scenario, const FlowResults& results) {
  const network::FlowSpec& flow = scenario.flows[number];
  if (flow.connection != network::FlowSpec::any_connection) return flow.connection;
  const auto place = [&](std::size_t i) { return std::pair(results.flows[i].start, i); };
  std::uint32_t num_before = 0;
  for (std::size_t i = 0; i < scenario.flows.size(); ++i) {
    const network::FlowSpec& other = scenario.flows[i];
    if (other.source != flow.source || other.destination != flow.destination) continue;
    if (results.flows[i].start != FlowTimes::never && place(i) < place(number)) ++num_before;
  }
  const std::uint32_t connections = scenario.rules.tcp.connections;  // 0: one for each flow
  return connections == 0 ? num_before : num_before % connections;
}

/// Returns where the connection of a flow stands that did not end; an empty text without connections, and for a flow
/// that did not begin.
std::string standing_of(std::size_t number, const network::FlowScenario& scenario, const FlowResults& results) {
  const network::FlowSpec& flow = scenario.flows[number];
  if (!scenario.rules.transport->has_connections || results.flows[number].start == FlowTimes::never) return {};
  const std::uint32_t its = connection_of(number, scenario, results);
  for (const network::ConnectionRecord& connection : results.records.connections)
    if (connection.source == flow.source && connection.destination == flow.destination && connection.number == its)
      return fmt::format(", connection {} with {} of {} B acknowledged and a time-out of {}", connection.number,
                         connection.acknowledged, connection.offered, readable(connection.timeout));
  return {};
}

/// Throws Error (stuck) that names the first flows that did not end.
void require_all_over(const network::FlowScenario& scenario, const FlowResults& results) {
  constexpr std::size_t most_named = 5;
  std::uint64_t num_left = 0;
  std::string named;
  for (std::size_t i = 0; i < results.flows.size(); ++i) {
    if (results.flows[i].received.ps() >= 0) continue;
    if (num_left++ >= most_named) continue;
    const network::FlowSpec& flow = scenario.flows[i];
    named += fmt::format("{}#{} ({} to {}{})", named.empty() ? "" : ", ", i, flow.source, flow.destination,
                         standing_of(i, scenario, results));
  }
  const auto open = std::ranges::find(results.reductions, FlowTimes::never, &network::ReductionTimes::end);
  if (open != results.reductions.end())
    throw Error(ErrorCode::stuck,
                fmt::format("reduction {} of the list did not end", open - results.reductions.begin()));
  if (num_left == 0) return;
  const std::string_view why =
      scenario.rules.transport->has_connections
          ? "A sender gives up after 15 time-outs without news, and after 6 without an answer to its SYN."
          : "Packets were lost that nobody sends again, or wait for ever. system.network.packets.loss: selective sends "
            "lost packets again.";
  throw Error(ErrorCode::stuck, fmt::format("{} did not end: {}{}. {}", counted(num_left, "flow"), named,
                                            num_left > most_named ? ", ..." : "", why));
}

void flows(const FlowsCommand& command, const CommandJob& job) {
  parallel::Communicator& world = job.world;
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

const Subcommand& flows_subcommand() {
  static const Subcommand command{
      "flows",
      "Simulate flows, packet by packet, over a graph of hosts and switches.",
      "FLOWS.yaml",
      "  orrery flows configs/flows/incast8.yaml\n"
      "  mpirun -np 2 orrery flows configs/flows/incast8.yaml --json flows.json",
      {{"Output",
        {{"json", "FILE", "times of each flow, and what each port did"},
         {"links", "", "record and print on which links flows met"},
         {"queue-bins", "N", "record queues and pauses in at most N intervals of time, and print them"},
         {"force", "", "replace an existing file"}}},
       {"Comparison", {{"scheduling-order", "", "order events of one time as ns-3 does; on one rank only"}}},
       own_inputs()}};
  return command;
}

FlowsCommand make_flows(const Arguments& arguments) {
  FlowsCommand command;
  if (!arguments.positional()) refuse_usage("orrery flows: no file. Give a FLOWS.yaml (docs/packet-network.md).");
  command.file = *arguments.positional();
  command.overrides = settings(arguments, "flows");
  command.json = arguments.text("json").value_or("");
  command.links = arguments.flag("links").value_or(false);
  command.queue_bins = arguments.count("queue-bins", 0).value_or(0);
  if (command.queue_bins > network::PacketRecording::most_queue_bins)
    refuse_usage(fmt::format("orrery flows: --queue-bins: found {}; expected {} at the most", command.queue_bins,
                             network::PacketRecording::most_queue_bins));
  command.in_scheduling_order = arguments.flag("scheduling-order").value_or(false);
  command.force = arguments.flag("force").value_or(false);
  return command;
}

}  // namespace

extern const CommandEntry flows_entry;
const CommandEntry flows_entry{flows_subcommand,
                               [](const Arguments& arguments) { return as_job(make_flows(arguments), flows); }};

}  // namespace orrery::cli
