#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "flow_tables.hpp"
#include "link_tables.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/flow_file.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/run/agreed.hpp"
#include "subcommands.hpp"
#include "text_output.hpp"

namespace orrery::app {
namespace {

using network::FlowResults;
using network::FlowTimes;
using nlohmann::ordered_json;

constexpr std::size_t most_links = 10;  // that are printed; the JSON has all

/// Sums over all ports, and the port with the deepest queue.
struct PortTotals {
  std::uint64_t marks = 0, drops = 0, pauses = 0, packets = 0, trims = 0;
  network::PortRecord deepest;
};

PortTotals totals_of(const FlowResults& results) {
  PortTotals totals;
  for (const network::PortRecord& port : results.ports) {
    totals.marks += port.marks;
    totals.drops += port.drops;
    totals.pauses += port.pauses;
    totals.packets += port.packets;
    totals.trims += port.trims;
    if (port.deepest_queue > totals.deepest.deepest_queue) totals.deepest = port;
  }
  return totals;
}

/// Returns a record of each flow.
std::vector<network::FlowRecord> records_of(const network::FlowScenario& scenario, const FlowResults& results) {
  std::vector<network::FlowRecord> records;
  for (std::uint32_t i = 0; i < results.flows.size(); ++i) {
    const network::FlowSpec& flow = scenario.flows[i];
    const FlowTimes& times = results.flows[i];
    records.push_back({.source = flow.source,
                       .destination = flow.destination,
                       .number = i,
                       .label = flow.label,
                       .bytes = flow.bytes,
                       .start = times.start,
                       .received = times.received,
                       .alone = times.alone});
  }
  return records;
}

void print(const network::FlowScenario& scenario, const FlowResults& results,
           std::span<const network::FlowClass> classes) {
  Time last;
  for (const FlowTimes& flow : results.flows) last = std::max(last, flow.received);
  const std::uint64_t num_over = classes.empty() ? 0 : classes.front().flows;
  fmt::print("{} on {} and {}, {}\n", counted(scenario.flows.size(), "flow"),
             counted(scenario.graph.num_hosts(), "host"),
             counted(scenario.graph.num_nodes() - scenario.graph.num_hosts(), "switch", "switches"),
             num_over == 0 ? "none of them over" : fmt::format("{} of them over after {}", num_over, readable(last)));
  print_flow_classes(classes, {scenario.labels});
  const PortTotals totals = totals_of(results);
  fmt::print("{} over links, {}, {}, {}\n", counted(totals.packets, "packet"), counted(totals.marks, "mark"),
             counted(totals.pauses, "pause"), counted(totals.drops, "packet dropped", "packets dropped"));
  if (totals.trims > 0) fmt::print("{}\n", counted(totals.trims, "packet trimmed", "packets trimmed"));
  if (totals.deepest.deepest_queue > 0)
    fmt::print("deepest queue: {} B at node {} towards node {}\n", totals.deepest.deepest_queue, totals.deepest.node,
               totals.deepest.peer);
}

/// Returns what tables call links, which are ports of the graph, and flows, which are numbers of the list.
LinkTexts texts_of(const network::FlowScenario& scenario, const FlowResults& results) {
  return {[&](std::uint32_t link) {
            return fmt::format("node {} to node {}", results.ports[link].node, results.ports[link].peer);
          },
          [&](std::uint32_t, std::uint32_t flow) {
            return fmt::format("#{} ({} to {})", flow, scenario.flows[flow].source, scenario.flows[flow].destination);
          }};
}

std::vector<network::LinkMeeting> meetings_of(const FlowResults& results) {
  return network::find_meetings(results.records.links, results.ports.size());
}

ordered_json as_json(const network::FlowScenario& scenario, const FlowResults& results,
                     std::span<const network::FlowClass> classes) {
  ordered_json json;
  json["events"] = results.events;
  json["classes"] = flow_classes_json(classes, {scenario.labels});
  json["flows"] = ordered_json::array();
  for (const FlowTimes& flow : results.flows)
    json["flows"].push_back({{"start_ps", flow.start.ps()},
                             {"received_ps", flow.received.ps()},
                             {"acknowledged_ps", flow.acknowledged.ps()},
                             {"alone_ps", flow.alone.ps()}});
  json["ports"] = ordered_json::array();
  for (const network::PortRecord& port : results.ports)
    json["ports"].push_back({{"node", port.node},
                             {"peer", port.peer},
                             {"packets", port.packets},
                             {"bytes", port.bytes},
                             {"busy_ps", port.busy.ps()},
                             {"marks", port.marks},
                             {"drops", port.drops},
                             {"pauses", port.pauses},
                             {"deepest_queue_bytes", port.deepest_queue},
                             {"trims", port.trims},
                             {"credit_wait_ps", port.credit_wait.ps()}});
  const LinkTexts texts = texts_of(scenario, results);
  if (scenario.recording.flows) json["meetings"] = meetings_json(meetings_of(results), texts);
  if (scenario.recording.queue_bins > 0) json["queues"] = queues_json(results.records, texts);
  return json;
}

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
    const auto classes = network::classify(records_of(scenario, results));
    print(scenario, results, classes);
    const LinkTexts texts = texts_of(scenario, results);
    if (scenario.recording.flows) print_meetings(network::find_meetings(results.records.links, most_links), texts);
    if (scenario.recording.queue_bins > 0) print_queues(results.records, most_links, texts);
    if (!command.json.empty()) {
      TextOutput output(command.json);
      output.write(as_json(scenario, results, classes).dump(1) + "\n");
      output.commit();
    }
    require_all_over(scenario, results);
  });
}

}  // namespace orrery::app
