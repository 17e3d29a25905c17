#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orrery/base/text.hpp"
#include "orrery/show/commands.hpp"
#include "orrery/trace/lone_file.hpp"
#include "print_figures.hpp"
#include "print_graph.hpp"

namespace orrery::show {
namespace {

using nlohmann::ordered_json;

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

trace::LoneFile read(const std::filesystem::path& path, const ShowTraceCommand& command) {
  trace::ReadOptions options;
  options.dependencies = command.dependencies;
  options.recording.step = command.step;
  return trace::read_lone_file(path, options);
}

/// Number and bytes of nodes.
struct Share {
  std::uint64_t count = 0, bytes = 0;

  void add(const Share& other) {
    count += other.count;
    bytes += other.bytes;
  }
};

ordered_json figures_of(const std::map<std::string, Share>& shares) {
  auto figures = ordered_json::object();
  for (const auto& [name, share] : shares) figures[name] = {{"bytes", share.bytes}, {"count", share.count}};
  return figures;
}

/// What the nodes of one or several traces come to.
struct Sums {
  std::uint64_t npus = 0, nodes = 0, dependencies = 0;
  double operations = 0;  ///< operations of compute nodes
  std::map<std::string, std::uint64_t> kinds;
  std::map<std::string, Share> collectives;        ///< and accesses of groups, by name
  std::map<std::string, Share> messages;           ///< sends and receives
  std::map<std::string, Time> recorded;            ///< recorded time by kind; kinds without any are left out
  std::map<std::uint16_t, std::uint64_t> streams;  ///< nodes of each stream

  void add(const trace::Graph& graph);
  void add(const Sums& other);
  ordered_json figures() const;
};

void Sums::add(const trace::Graph& graph) {
  ++npus;
  nodes += graph.num_nodes();
  dependencies += graph.successors.size();
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    const auto& node = graph.nodes[i];
    const std::string kind(name_of(node.kind));
    ++kinds[kind];
    if (const Time duration = graph.duration_of(NodeId(i)); duration > Time::zero()) recorded[kind] += duration;
    if (node.stream > 0) ++streams[node.stream];
    if (node.kind == trace::NodeKind::compute) operations += static_cast<double>(node.detail);
    if (node.is_of_group()) collectives[trace::name(node.kind, node.collective)].add({1, node.size});
    if (node.kind == trace::NodeKind::send || node.kind == trace::NodeKind::receive) messages[kind].add({1, node.size});
  }
}

void Sums::add(const Sums& other) {
  npus += other.npus;
  nodes += other.nodes;
  dependencies += other.dependencies;
  operations += other.operations;
  for (const auto& [kind, count] : other.kinds) kinds[kind] += count;
  for (const auto& [name, share] : other.collectives) collectives[name].add(share);
  for (const auto& [name, share] : other.messages) messages[name].add(share);
  for (const auto& [kind, time] : other.recorded) recorded[kind] += time;
}

ordered_json figure_of(Time time) {
  if (time < Time::max()) return time.ps();
  return "more than 106 days";
}

ordered_json Sums::figures() const {
  Time all;
  for (const auto& [kind, time] : recorded) all += time;
  ordered_json figures{{"nodes", nodes}, {"dependencies", dependencies}, {"kinds", kinds}};
  figures["collectives"] = figures_of(collectives);
  if (!messages.empty()) figures["messages"] = figures_of(messages);
  if (operations > 0) figures["operations"] = operations;
  figures["recorded_duration_ps"] = figure_of(all);
  for (const auto& [kind, time] : recorded) figures["durations_ps"][kind] = figure_of(time);
  for (const auto& [stream, count] : streams) figures["nodes_of_streams"].push_back(count);
  return figures;
}

Sums sums_of(const trace::LoneFile& file) {
  Sums sums;
  for (const trace::LoneTrace& shown : file.traces) sums.add(*shown.trace.graph);
  return sums;
}

ordered_json figures_of(const trace::LoneFile& file) {
  const trace::NpuTrace& first = file.traces.front().trace;
  ordered_json figures{{"file", file.path.string()}, {"format", file.store.format(first)}};
  if (file.names_owners)
    for (const trace::LoneTrace& shown : file.traces) figures["npus"].push_back(shown.npu.value());
  figures["bytes_kept"] = file.store.bytes();
  figures.update(sums_of(file).figures());
  if (file.traces.size() == 1 && !first.graph->tensors.sizes.empty())
    figures["tensors"] = figures_of(first.graph->tensors);
  for (const auto& group : file.store.groups()) figures["groups"].push_back(group.name);
  for (const auto& [kind, entry] : file.store.notices().entries()) figures["warnings"].push_back(entry.text);
  return figures;
}

std::uint64_t sum(const std::map<std::string, Share>& shares, std::uint64_t Share::*which) {
  std::uint64_t all = 0;
  for (const auto& [name, share] : shares) all += share.*which;
  return all;
}

void print_row(std::string_view file, std::string_view format, const Sums& sums) {
  const auto duration = [&](const std::string& kind) {
    const auto found = sums.recorded.find(kind);
    return found == sums.recorded.end() ? std::string("0 ns") : readable(found->second);
  };
  fmt::print("{:<12} {:>6} {:>9} {:>9} {:>12} {:>11} {:>16} {:>9} {:>16}  {}\n", format, sums.npus, sums.nodes,
             sums.kinds.contains("compute") ? sums.kinds.at("compute") : 0, duration("compute"),
             sum(sums.collectives, &Share::count), sum(sums.collectives, &Share::bytes),
             sum(sums.messages, &Share::count), sum(sums.messages, &Share::bytes), file);
}

/// Prints figures of several files, each as soon as it was read.
void show_files(const ShowTraceCommand& command) {
  const bool json = command.form == TraceForm::json;
  if (!json)
    fmt::print("{:<12} {:>6} {:>9} {:>9} {:>12} {:>11} {:>16} {:>9} {:>16}  {}\n", "format", "NPUs", "nodes", "compute",
               "recorded", "collectives", "bytes", "messages", "bytes", "file");
  ordered_json figures;
  Sums total;
  for (const auto& path : command.files) {
    const trace::LoneFile file = read(path, command);
    const Sums sums = sums_of(file);
    total.add(sums);
    if (json)
      figures["files"].push_back(figures_of(file));
    else
      print_row(path.string(), file.store.format(file.traces.front().trace), sums);
  }
  if (!json) return print_row("all files", "", total);
  figures["total"] = total.figures();
  print_figures(figures, true);
}

}  // namespace

void show_trace(const ShowTraceCommand& command) {
  if (command.files.size() > 1) return show_files(command);
  const trace::LoneFile file = read(command.files.front(), command);
  if (command.form == TraceForm::nodes) return print_nodes(file.store, file.traces);
  if (command.form == TraceForm::dot) return print_dot(file.store, file.traces);
  if (command.form == TraceForm::graphml) return print_graphml(file.store, file.traces);
  print_figures(figures_of(file), command.form == TraceForm::json);
}

}  // namespace orrery::show
