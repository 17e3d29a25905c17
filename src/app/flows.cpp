#include <algorithm>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "agreed.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/flow_file.hpp"
#include "orrery/network/flow_run.hpp"
#include "subcommands.hpp"
#include "text_output.hpp"

namespace orrery::app {
namespace {

using network::FlowResults;
using network::FlowTimes;
using nlohmann::ordered_json;

/// Sums over all ports, and the port with the deepest queue.
struct PortTotals {
  std::uint64_t marks = 0, drops = 0, pauses = 0, packets = 0;
  network::PortRecord deepest;
};

PortTotals totals_of(const FlowResults& results) {
  PortTotals totals;
  for (const network::PortRecord& port : results.ports) {
    totals.marks += port.marks;
    totals.drops += port.drops;
    totals.pauses += port.pauses;
    totals.packets += port.packets;
    if (port.deepest_queue > totals.deepest.deepest_queue) totals.deepest = port;
  }
  return totals;
}

/// Returns the times that the flows took from their start to the last byte, ascending, of those that have ended.
std::vector<Time> durations_of(const FlowResults& results) {
  std::vector<Time> durations;
  for (const FlowTimes& flow : results.flows)
    if (flow.received != FlowTimes::never) durations.push_back(flow.received - flow.start);
  std::ranges::sort(durations);
  return durations;
}

/// Returns the least duration that so many hundredths of the flows do not exceed.
Time percentile(const std::vector<Time>& durations, std::size_t hundredths) {
  const std::size_t rank = (durations.size() * hundredths + 99) / 100;
  return durations[std::max<std::size_t>(rank, 1) - 1];
}

void print(const network::FlowScenario& scenario, const FlowResults& results) {
  const auto durations = durations_of(results);
  Time last;
  for (const FlowTimes& flow : results.flows) last = std::max(last, flow.received);
  fmt::print("{} on {} and {}, {} of them over after {}\n", counted(scenario.flows.size(), "flow"),
             counted(scenario.graph.num_hosts(), "host"),
             counted(scenario.graph.num_nodes() - scenario.graph.num_hosts(), "switch", "switches"), durations.size(),
             readable(last));
  if (!durations.empty()) {
    SumOfTimes sum = 0;
    for (const Time duration : durations) sum += static_cast<SumOfTimes>(duration.ps());
    const Time mean = Time::from_ps(static_cast<std::int64_t>(sum / durations.size()));
    fmt::print("time of a flow: mean {}, median {}, 95 % {}, 99 % {}, longest {}\n", readable(mean),
               readable(percentile(durations, 50)), readable(percentile(durations, 95)),
               readable(percentile(durations, 99)), readable(durations.back()));
  }
  const PortTotals totals = totals_of(results);
  fmt::print("{} over links, {}, {}, {}\n", counted(totals.packets, "packet"), counted(totals.marks, "mark"),
             counted(totals.pauses, "pause"), counted(totals.drops, "packet dropped", "packets dropped"));
  if (totals.deepest.deepest_queue > 0)
    fmt::print("deepest queue: {} B at node {} towards node {}\n", totals.deepest.deepest_queue, totals.deepest.node,
               totals.deepest.peer);
}

ordered_json as_json(const FlowResults& results) {
  ordered_json json;
  json["events"] = results.events;
  json["flows"] = ordered_json::array();
  for (const FlowTimes& flow : results.flows)
    json["flows"].push_back({{"start_ps", flow.start.ps()},
                             {"received_ps", flow.received.ps()},
                             {"acknowledged_ps", flow.acknowledged.ps()}});
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
                             {"deepest_queue_bytes", port.deepest_queue}});
  return json;
}

}  // namespace

void flows(const config::FlowsCommand& command, parallel::Communicator& world) {
  const auto scenario = agreed(world, [&] {
    if (command.in_scheduling_order && world.size() > 1)
      throw Error(ErrorCode::usage, {.key = "--scheduling-order"},
                  fmt::format("found {}", counted(static_cast<std::uint64_t>(world.size()), "rank")), "one rank");
    if (world.is_root() && !command.json.empty()) check_output(command.json, command.force);
    return config::read_flows(command.file, command.overrides);
  });
  const auto order = command.in_scheduling_order ? network::EventOrder::by_scheduling : network::EventOrder::by_system;
  const FlowResults results = network::run_flows(scenario, world, order);
  world.agree([&] {
    if (!world.is_root()) return;
    print(scenario, results);
    if (command.json.empty()) return;
    TextOutput output(command.json);
    output.write(as_json(results).dump(1) + "\n");
    output.commit();
  });
}

}  // namespace orrery::app
