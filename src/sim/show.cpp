#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/collective/collective.hpp"
#include "orrery/sim/commands.hpp"
#include "orrery/trace/store.hpp"
#include "progress.hpp"

namespace orrery::sim {
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
    if (node.kind != trace::NodeKind::collective) continue;
    auto& entry = collectives[std::string(trace::name(node.collective))];
    ++entry["count"];
    entry["bytes"] += node.size;
  }
  result["kinds"] = kinds;
  result["collectives"] = collectives;
  result["recorded_duration_ps"] = recorded.ps();
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
    std::uint32_t farthest = 0;
    for (std::uint32_t k = 1; k < dimension.size; ++k) farthest = std::max(farthest, topology.hops(d, k));
    result["dimensions"].push_back({{"shape", topology::name(dimension.shape)},
                                    {"size", dimension.size},
                                    {"bytes_per_ns", dimension.bandwidth.bytes_per_ns()},
                                    {"latency_ns", dimension.latency_ns},
                                    {"stride", topology.stride(d)},
                                    {"farthest_hops", farthest}});
  }
  print(result, command.json);
}

void show(const config::ShowCollectiveCommand& command) {
  const auto configuration = config::read(command.inputs);
  const auto topology = configuration.topology();
  const auto count = command.npus.value_or(topology.num_npus());
  if (count == 0 || count > topology.num_npus())
    throw Error(ErrorCode::usage, {.key = "--npus"}, fmt::format("found {}", count), fmt::format("1 to {}", topology.num_npus()));
  std::vector<NpuId> members;
  if (count < topology.num_npus())
    for (std::uint32_t i = 0; i < count; ++i) members.emplace_back(i);
  collective::Engine engine(topology, configuration.collectives);
  const auto layout = engine.layout(members, trace::all_dimensions);
  engine.validate(*layout, command.kind);
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
  result["algorithm_bandwidth_bytes_per_s"] = static_cast<double>(command.bytes.count()) / std::max(last->seconds(), 1e-12);
  for (const Bytes bytes : engine.traffic(*layout, command.kind, command.bytes))
    result["bytes_sent_per_member_and_dimension"].push_back(bytes.count());
  print(result, command.json);
}

}  // namespace orrery::sim
