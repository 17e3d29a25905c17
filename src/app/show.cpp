#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/app/commands.hpp"
#include "orrery/base/text.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/results/kernel_figures.hpp"
#include "orrery/results/read.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::app {
namespace {

using nlohmann::ordered_json;

std::string name_of(trace::NodeKind kind) {
  constexpr std::array names{"instant", "cpu", "compute", "collective", "send", "receive", "mem_load", "mem_store"};
  return names[static_cast<std::size_t>(kind)];
}

/// Text: one "key: value" line each, nested keys joined by dots; JSON as it is.
void print(const ordered_json& value, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", value.dump(2));
    return;
  }
  const ordered_json flat = value.flatten();
  for (const auto& [key, item] : flat.items()) {
    std::string path = key.substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    fmt::print("{}: {}\n", path, item.is_string() ? item.get<std::string>() : item.dump());
  }
}

ordered_json row(const results::KernelRecord& rank) {
  return {{"events", rank.events},
          {"data_messages", rank.data_messages},
          {"null_messages", rank.null_messages},
          {"null_messages_received", rank.null_messages_received},
          {"promise_requests", rank.promise_requests},
          {"message_bytes", rank.message_bytes},
          {"reductions", rank.reductions},
          {"blocked_time_s", rank.blocked_time},
          {"busy_time_s", rank.busy_time},
          {"peak_pending_events", rank.peak_pending_events},
          {"peak_memory_bytes", rank.peak_memory_bytes},
          {"critical_path", rank.critical_path}};
}

/// What the limit means, with the figures that it was told by.
std::string explanation(const results::KernelFigures& figures) {
  switch (figures.limit) {
    case results::Limit::one_rank:
      return "there is nobody to wait for";
    case results::Limit::imbalance:
      return fmt::format(
          "ranks are blocked for {:.0f} % of their time, and their events are uneven (efficiency {:.2f}): "
          "try another partition",
          100 * figures.blocked_share, figures.efficiency);
    case results::Limit::messages:
      return fmt::format(
          "{:.2f} messages per hundred events, {:.2f} null messages per data message: try a partition that "
          "cuts less, or fewer ranks",
          figures.messages_per_100_events, figures.null_per_data);
    case results::Limit::waiting:
      return fmt::format(
          "ranks are blocked for {:.0f} % of their time though their events are even: what happens depends "
          "on other ranks; the best possible speedup is {:.2f}",
          100 * figures.blocked_share, figures.best_speedup);
    case results::Limit::work:
      return fmt::format("ranks are blocked for {:.1f} % of their time only: more ranks may help",
                         100 * figures.blocked_share);
  }
  ensure_failed("a limit is explained", std::source_location::current());
}

void print_row(std::string_view rank, const results::KernelRecord& r) {
  fmt::print("{:>5} {:>12} {:>10} {:>10} {:>10} {:>13} {:>10} {:>9.3f} {:>9.3f} {:>9} {:>9.1f} {:>12}\n", rank,
             r.events, r.data_messages, r.null_messages, r.promise_requests, r.message_bytes, r.reductions,
             r.blocked_time, r.busy_time, r.peak_pending_events, static_cast<double>(r.peak_memory_bytes) / (1 << 20),
             r.critical_path);
}

void print(const results::KernelTable& table, const results::KernelFigures& figures) {
  fmt::print("{} on {}, {:.3f} s of wall time\n\n", table.status, counted(table.ranks.size(), "rank"), table.wall_time);
  fmt::print("{:>5} {:>12} {:>10} {:>10} {:>10} {:>13} {:>10} {:>9} {:>9} {:>9} {:>9} {:>12}\n", "", "", "data", "null",
             "", "", "", "blocked", "busy", "peak", "peak MiB", "critical");
  fmt::print("{:>5} {:>12} {:>10} {:>10} {:>10} {:>13} {:>10} {:>9} {:>9} {:>9} {:>9} {:>12}\n", "rank", "events",
             "messages", "messages", "requests", "bytes", "reductions", "s", "s", "pending", "memory", "path");
  for (std::size_t rank = 0; rank < table.ranks.size(); ++rank) print_row(fmt::to_string(rank), table.ranks[rank]);
  print_row("all", figures.total);
  fmt::print("\nnull messages per data message: {:.3f}\n", figures.null_per_data);
  fmt::print("null messages per hundred events: {:.3f}\n", figures.null_per_100_events);
  fmt::print("efficiency: {:.3f} (events / (ranks x largest events of a rank))\n", figures.efficiency);
  fmt::print("busy: {:.3f} of the ranks' time\n", 1 - figures.blocked_share);
  fmt::print("best possible speedup: {:.2f} (events / critical path)\n", figures.best_speedup);
  fmt::print("limit: {}: {}\n", name(figures.limit), explanation(figures));
}

}  // namespace

void show(const config::ShowKernelCommand& command) {
  const auto table = results::read_kernel(command.file);
  const auto figures = results::kernel_figures(table.ranks);
  if (!command.json) {
    print(table, figures);
    return;
  }
  ordered_json result;
  result["file"] = command.file.string();
  result["status"] = table.status;
  result["wall_time_s"] = table.wall_time;
  for (const auto& rank : table.ranks) result["ranks"].push_back(row(rank));
  result["total"] = row(figures.total);
  result["null_messages_per_data_message"] = figures.null_per_data;
  result["null_messages_per_100_events"] = figures.null_per_100_events;
  result["messages_per_100_events"] = figures.messages_per_100_events;
  result["blocked_share"] = figures.blocked_share;
  result["efficiency"] = figures.efficiency;
  result["best_possible_speedup"] = figures.best_speedup;
  result["limit"] = name(figures.limit);
  result["explanation"] = explanation(figures);
  print(result, true);
}

namespace {

ordered_json figures_of(const trace::Tensors& tensors) {
  const std::vector<bool> has_maker = tensors.has_maker();
  Bytes all, without_maker;
  for (std::size_t i = 0; i < tensors.sizes.size(); ++i) {
    all += Bytes(tensors.sizes[i]);
    if (!has_maker[i]) without_maker += Bytes(tensors.sizes[i]);
  }
  return {{"count", tensors.sizes.size()},
          {"bytes", all.count()},
          {"listings", tensors.listings.size()},
          {"without_maker", std::ranges::count(has_maker, false)},
          {"bytes_without_maker", without_maker.count()}};
}

}  // namespace

void show(const config::ShowTraceCommand& command) {
  trace::Store store({.dependencies = command.dependencies, .alone = true}, {});
  const auto trace = store.read(command.file, NpuId(0));
  const auto& graph = *trace.graph;
  ordered_json result;
  result["file"] = command.file.string();
  result["nodes"] = graph.num_nodes();
  result["dependencies"] = graph.successors.size();
  result["bytes_kept"] = store.bytes();
  std::map<std::string, std::uint64_t> kinds;
  std::map<std::string, std::map<std::string, std::uint64_t>> collectives;
  Time recorded;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    ++kinds[name_of(node.kind)];
    recorded += graph.duration_of(NodeId(i));
    if (!node.is_of_group()) continue;
    auto& entry = collectives[trace::name(node.kind, node.collective)];
    ++entry["count"];
    entry["bytes"] += node.size;
  }
  result["kinds"] = kinds;
  result["collectives"] = collectives;
  if (!graph.tensors.sizes.empty()) result["tensors"] = figures_of(graph.tensors);
  if (recorded < Time::max())
    result["recorded_duration_ps"] = recorded.ps();
  else
    result["recorded_duration_ps"] = "more than 106 days";
  for (const auto& group : store.groups()) result["groups"].push_back(group.name);
  for (const auto& [kind, entry] : store.notices().entries()) result["warnings"].push_back(entry.text);
  print(result, command.json);
}

void show(const config::ShowTopologyCommand& command) {
  const auto configuration = config::read(command.inputs);
  const auto topology = configuration.topology();
  ordered_json result;
  result["npus"] = topology.num_npus();
  result["rules"] = config::name(configuration.rule_set);
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    const auto& dimension = topology.dimension(d);
    result["dimensions"].push_back({{"shape", topology::name(dimension.shape)},
                                    {"size", dimension.size},
                                    {"bytes_per_ns", dimension.bandwidth.bytes_per_ns()},
                                    {"latency_ns", dimension.latency_ns},
                                    {"stride", topology.stride(d)},
                                    {"farthest_hops", dimension.size == 1 ? 0 : topology.wiring(d).most_hops()}});
    for (const topology::ShapeParameter& parameter : dimension.shape->parameters) {
      std::string key(parameter.name);
      std::ranges::replace(key, '-', '_');
      result["dimensions"].back()[key] = dimension.parameter(parameter.name);
    }
    if (dimension.links > 1) result["dimensions"].back()["links"] = dimension.links;
    if (dimension.oversubscription > 1) result["dimensions"].back()["oversubscription"] = dimension.oversubscription;
    if (dimension.in_switch_operations > 0)
      result["dimensions"].back()["in_switch_operations"] = dimension.in_switch_operations;
  }
  print(result, command.json);
}

void show(const config::ShowCollectiveCommand& command) {
  const auto configuration = config::read(command.inputs);
  const auto topology = configuration.topology();
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (const auto shape = topology.dimension(d).shape; shape->is_of_links_only)
      throw Error(
          ErrorCode::bad_input,
          fmt::format("topology, dimension {} ({}): what is shown of collectives is computed as in the "
                      "congestion-unaware network, which does not have this shape; expected {}, or a simulation by "
                      "orrery run",
                      d, topology::name(shape), topology::shapes_of_any_network()));
  const auto count = command.npus.value_or(topology.num_npus());
  if (count == 0 || count > topology.num_npus())
    throw Error(ErrorCode::usage, {.key = "--npus"}, fmt::format("found {}", count),
                fmt::format("1 to {}", topology.num_npus()));
  std::vector<NpuId> members;
  if (count < topology.num_npus())
    for (std::uint32_t i = 0; i < count; ++i) members.emplace_back(i);
  collective::Engine engine(configuration.delays(), configuration.collectives);
  const auto layout = engine.layout(members, trace::all_dimensions);
  engine.validate(*layout, command.kind);
  if (!engine.fits(*layout, command.kind, command.bytes))
    throw Error(ErrorCode::usage, {.key = "--bytes"},
                fmt::format("found {}, for which the collective does not fit the range of time (106 days) or of bytes",
                            command.bytes.count()),
                "fewer bytes");
  const std::vector<Time> arrivals(count);
  std::vector<Time> completions(count);
  engine.finish(*layout, command.kind, command.bytes, arrivals, completions);
  const auto [first, last] = std::minmax_element(completions.begin(), completions.end());
  ordered_json result;
  result["kind"] = collective::name(command.kind);
  result["bytes"] = command.bytes.count();
  result["members"] = count;
  result["first_done_ps"] = first->ps();
  result["last_done_ps"] = last->ps();
  result["time"] = readable(*last);
  result["algorithm_bandwidth_bytes_per_s"] =
      static_cast<double>(command.bytes.count()) / std::max(last->seconds(), 1e-12);
  for (const Bytes bytes : engine.traffic(*layout, command.kind, command.bytes))
    result["bytes_sent_per_member_and_dimension"].push_back(bytes.count());
  print(result, command.json);
}

}  // namespace orrery::app
