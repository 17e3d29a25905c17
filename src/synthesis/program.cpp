#include "program.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <queue>

namespace orrery::synthesis {
namespace {

using trace::Graph;
using trace::NodeKind;

std::vector<std::uint32_t> canonical_order(const Graph& graph) {
  std::vector<std::uint32_t> missing(graph.num_nodes());
  std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
    missing[i] = graph.nodes[i].num_dependencies;
    if (missing[i] == 0) ready.push(i);
  }
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t node = ready.top();
    ready.pop();
    order.push_back(node);
    for (const auto successor : graph.successors_of(NodeId(node)))
      if (--missing[successor] == 0) ready.push(successor);
  }
  return order;
}

Family family_of(const Graph& graph, NodeId id, const Views& views, const NpuView& view) {
  const trace::Node& node = graph.nodes[id.index()];
  Family family{.kind = node.kind, .priority = graph.priority_of(id), .stream = node.stream};
  if (node.is_of_group()) {
    family.collective = node.collective;
    family.dimensions = node.detail;
    family.group = views.shapes[view.shapes[node.slot]];
  }
  if (is_message(node.kind)) family.peer = views.offsets[view.offsets[node.slot]];
  return family;
}

Sizes sizes_of(const Graph& graph, NodeId id) {
  const trace::Node& node = graph.nodes[id.index()];
  return {
      .flops = node.kind == NodeKind::compute ? node.detail : 0, .bytes = node.size, .ps = graph.duration_of(id).ps()};
}

/// Finds the tensors of a graph by the node that lists them last. `position`: of each node in canonical order.
std::vector<std::vector<ProgramTensor>> tensors_of(const Graph& graph, std::span<const std::uint32_t> position) {
  struct Span {
    std::uint32_t first = 0, last = 0;
    bool is_listed = false;
    TensorUse use;
  };
  std::vector<Span> spans(graph.tensors.sizes.size());
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i)
    for (const trace::Listing listing : graph.tensors.of(NodeId(i))) {
      Span& span = spans[listing.tensor];
      const std::uint32_t at = position[i];
      if (!span.is_listed || at < span.first) {
        span.first = at;
        span.use.first_needs = listing.needs != 0;
        span.use.first_makes = listing.makes != 0;
      }
      if (!span.is_listed || at > span.last) {
        span.last = at;
        span.use.last_needs = listing.needs != 0;
        span.use.last_makes = listing.makes != 0;
      }
      span.is_listed = true;
    }
  std::vector<std::vector<ProgramTensor>> held(graph.num_nodes());
  for (std::size_t t = 0; t < spans.size(); ++t)
    if (spans[t].is_listed) held[spans[t].last].push_back({spans[t].first, spans[t].use, graph.tensors.sizes[t]});
  return held;
}

/// Numbers values so that those of one cluster have one number: 0 is the value 0.
class Clusters {
 public:
  void add(std::uint32_t family, double value) {
    if (value > 0) values_[family].push_back(std::log10(value));
  }
  void finish(double gap) {
    for (auto& [family, values] : values_) {
      std::ranges::sort(values);
      std::vector<double> ends;
      for (std::size_t i = 1; i < values.size(); ++i)
        if (values[i] - values[i - 1] > gap) ends.push_back((values[i] + values[i - 1]) / 2);
      values = std::move(ends);
    }
  }
  std::uint32_t of(std::uint32_t family, double value) const {
    if (value <= 0) return 0;
    const auto& ends = values_.at(family);
    return 1 + static_cast<std::uint32_t>(std::ranges::lower_bound(ends, std::log10(value)) - ends.begin());
  }

 private:
  std::map<std::uint32_t, std::vector<double>> values_;
};

}  // namespace

Program read_program(const trace::NpuTrace& trace, const Views& views, std::uint32_t npu,
                     std::vector<Family>& families) {
  const Graph& graph = *trace.graph;
  Program program{.npu = npu, .nodes = canonical_order(graph)};
  std::map<Family, std::uint32_t> known;
  for (std::uint32_t f = 0; f < families.size(); ++f) known.emplace(families[f], f);
  std::vector<std::uint32_t> position(graph.num_nodes());
  program.dependencies.resize(program.nodes.size());
  for (std::uint32_t k = 0; k < program.nodes.size(); ++k) {
    const NodeId id(program.nodes[k]);
    position[id.index()] = k;
    const Family family = family_of(graph, id, views, views.npus[npu]);
    const auto [found, added] = known.try_emplace(family, static_cast<std::uint32_t>(families.size()));
    if (added) families.push_back(family);
    program.families.push_back(found->second);
    program.sizes.push_back(sizes_of(graph, id));
  }
  for (std::uint32_t k = 0; k < program.nodes.size(); ++k)
    for (const auto successor : graph.successors_of(NodeId(program.nodes[k])))
      program.dependencies[position[successor]].push_back(k);
  for (auto& list : program.dependencies) std::ranges::sort(list);
  program.held = tensors_of(graph, position);
  return program;
}

void give_symbols(std::span<Program> programs, double gap) {
  std::array<Clusters, 3> clusters;
  const auto values = [](const Sizes& sizes) {
    return std::array{static_cast<double>(sizes.flops), static_cast<double>(sizes.bytes),
                      static_cast<double>(sizes.ps)};
  };
  for (const Program& program : programs)
    for (std::size_t k = 0; k < program.nodes.size(); ++k)
      for (std::size_t field = 0; field < clusters.size(); ++field)
        clusters[field].add(program.families[k], values(program.sizes[k])[field]);
  for (Clusters& field : clusters) field.finish(gap);
  std::map<std::array<std::uint32_t, 4>, std::uint32_t> numbers;
  for (Program& program : programs)
    for (std::size_t k = 0; k < program.nodes.size(); ++k) {
      const std::uint32_t family = program.families[k];
      const auto sizes = values(program.sizes[k]);
      const std::array key{family, clusters[0].of(family, sizes[0]), clusters[1].of(family, sizes[1]),
                           clusters[2].of(family, sizes[2])};
      program.symbols.push_back(numbers.try_emplace(key, static_cast<std::uint32_t>(numbers.size())).first->second);
    }
}

}  // namespace orrery::synthesis
