#include "orrery/show/flow_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "flow_tables.hpp"
#include "link_tables.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/text_output.hpp"

namespace orrery::show {
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

/// Prints when the reductions were over, and what switches needed for them.
void print_reductions(const FlowResults& results) {
  if (results.reductions.empty()) return;
  Time last;
  std::uint64_t num_over = 0;
  for (const network::ReductionTimes& reduction : results.reductions) {
    num_over += reduction.end == FlowTimes::never ? 0 : 1;
    last = std::max(last, reduction.end);
  }
  std::uint32_t most_slots = 0;
  for (const network::ReductionRecord& record : results.records.reductions)
    most_slots = std::max(most_slots, record.most_slots);
  fmt::print("{}, {} of them over after {}; switches used at most {} at a time\n",
             counted(results.reductions.size(), "reduction"), num_over, readable(last), counted(most_slots, "slot"));
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
  print_reductions(results);
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

ordered_json connections_json(std::span<const network::ConnectionRecord> connections) {
  ordered_json rows = ordered_json::array();
  for (const network::ConnectionRecord& connection : connections)
    rows.push_back({{"from", connection.source},
                    {"to", connection.destination},
                    {"connection", connection.number},
                    {"segments", connection.segments},
                    {"repeated", connection.repeated},
                    {"timeouts", connection.timeouts},
                    {"round_trip_ps", connection.round_trip.ps()},
                    {"greatest_window_bytes", connection.greatest_window},
                    {"acknowledged_bytes", connection.acknowledged},
                    {"offered_bytes", connection.offered},
                    {"timeout_ps", connection.timeout.ps()}});
  return rows;
}

/// Prints what the connections of TCP did together, and which of them waited for the most time-outs.
void print_connections(std::span<const network::ConnectionRecord> connections) {
  network::ConnectionRecord sum, worst;
  for (const network::ConnectionRecord& connection : connections) {
    sum.segments += connection.segments;
    sum.repeated += connection.repeated;
    sum.timeouts += connection.timeouts;
    if (connection.timeouts > worst.timeouts) worst = connection;
  }
  fmt::print("{}, {}, {} of them sent again, {}\n", counted(connections.size(), "connection"),
             counted(sum.segments, "segment"), sum.repeated, counted(sum.timeouts, "time-out"));
  if (worst.timeouts > 0)
    fmt::print("most time-outs: {} from host {} to host {}, which sent {} again\n", worst.timeouts, worst.source,
               worst.destination, counted(worst.repeated, "segment"));
}

void put_reductions(const FlowResults& results, ordered_json& json) {
  json["reductions"] = ordered_json::array();
  for (const network::ReductionTimes& reduction : results.reductions)
    json["reductions"].push_back({{"start_ps", reduction.start.ps()},
                                  {"first_end_ps", reduction.first_end.ps()},
                                  {"end_ps", reduction.end.ps()}});
  json["switches"] = ordered_json::array();
  for (const network::ReductionRecord& record : results.records.reductions)
    json["switches"].push_back({{"node", record.node},
                                {"operations", record.operations},
                                {"packets", record.packets},
                                {"most_slots", record.most_slots}});
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
  if (!results.reductions.empty()) put_reductions(results, json);
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
  if (scenario.rules.transport->has_connections) json["connections"] = connections_json(results.records.connections);
  const LinkTexts texts = texts_of(scenario, results);
  if (scenario.recording.flows) json["meetings"] = meetings_json(meetings_of(results), texts);
  if (scenario.recording.queue_bins > 0) json["queues"] = queues_json(results.records, texts);
  return json;
}

}  // namespace

void print_flow_run(const network::FlowScenario& scenario, const network::FlowResults& results) {
  print(scenario, results, network::classify(records_of(scenario, results)));
  if (scenario.rules.transport->has_connections) print_connections(results.records.connections);
  const LinkTexts texts = texts_of(scenario, results);
  if (scenario.recording.flows) print_meetings(network::find_meetings(results.records.links, most_links), texts);
  if (scenario.recording.queue_bins > 0) print_queues(results.records, most_links, texts);
}

void write_flow_run(const std::filesystem::path& path, const network::FlowScenario& scenario,
                    const network::FlowResults& results) {
  TextOutput output(path);
  output.write(as_json(scenario, results, network::classify(records_of(scenario, results))).dump(1) + "\n");
  output.commit();
}

}  // namespace orrery::show
