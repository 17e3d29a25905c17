#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orrery/trace/store.hpp"
#include "print_figures.hpp"
#include "subcommands.hpp"

namespace orrery::app {
namespace {

using nlohmann::ordered_json;

std::string name_of(trace::NodeKind kind) {
  constexpr std::array names{"instant", "cpu", "compute", "collective", "send", "receive", "mem_load", "mem_store", "host"};
  return names[static_cast<std::size_t>(kind)];
}

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

/// Adds the number of nodes of each kind, the collectives of each kind and the recorded duration of all nodes.
void add_nodes(const trace::Graph& graph, ordered_json& figures) {
  std::map<std::string, std::uint64_t> kinds;
  std::map<std::string, std::map<std::string, std::uint64_t>> collectives;
  std::map<std::string, Time> durations;
  std::map<std::uint16_t, std::uint64_t> streams;
  Time recorded;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    ++kinds[name_of(node.kind)];
    recorded += graph.duration_of(NodeId(i));
    durations[name_of(node.kind)] += graph.duration_of(NodeId(i));
    if (node.stream > 0) ++streams[node.stream];
    if (!node.is_of_group()) continue;
    auto& entry = collectives[trace::name(node.kind, node.collective)];
    ++entry["count"];
    entry["bytes"] += node.size;
  }
  figures["kinds"] = kinds;
  figures["collectives"] = collectives;
  for (const auto& [kind, duration] : durations)
    if (duration > Time::zero() && duration < Time::max()) figures["durations_ps"][kind] = duration.ps();
  for (const auto& [stream, count] : streams) figures["nodes_of_streams"].push_back(count);
  if (!graph.tensors.sizes.empty()) figures["tensors"] = figures_of(graph.tensors);
  if (recorded < Time::max())
    figures["recorded_duration_ps"] = recorded.ps();
  else
    figures["recorded_duration_ps"] = "more than 106 days";
}

}  // namespace

void show_trace(const config::ShowTraceCommand& command) {
  trace::Store store({.dependencies = command.dependencies,
                      .streams = trace::Streams::by_name,
                      .recording = {.step = command.step},
                      .alone = true},
                     {});
  const auto trace = store.read(command.file, NpuId(0));
  ordered_json figures;
  figures["file"] = command.file.string();
  figures["format"] = store.format(trace);
  figures["nodes"] = trace.graph->num_nodes();
  figures["dependencies"] = trace.graph->successors.size();
  figures["bytes_kept"] = store.bytes();
  add_nodes(*trace.graph, figures);
  for (const auto& group : store.groups()) figures["groups"].push_back(group.name);
  for (const auto& [kind, entry] : store.notices().entries()) figures["warnings"].push_back(entry.text);
  print_figures(figures, command.json);
}

}  // namespace orrery::app
