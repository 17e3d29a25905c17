#include "structures.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "orrery/base/mix.hpp"
#include "orrery/base/time.hpp"

namespace orrery::synthesis {
namespace {

using trace::Graph;
using trace::Node;
using trace::NodeKind;

/// Returns a number for what nodes of a kind compete for.
int resource_of(NodeKind kind) {
  switch (kind) {
    case NodeKind::instant:
      return 0;
    case NodeKind::cpu:
    case NodeKind::host:
      return 1;
    case NodeKind::compute:
      return 2;
    default:
      return 3;
  }
}

/// Returns the nodes in the order in which they are written.
std::vector<std::uint32_t> shuffled(const Model& model, const ScaledProgram& program, std::uint64_t seed) {
  std::vector<std::uint32_t> order(program.nodes.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto kind = [&](std::uint32_t k) { return model.families[program.nodes[k].slot->family].kind; };
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    const std::uint32_t a = order[i], b = order[i + 1];
    const bool depends = std::ranges::binary_search(program.nodes[b].dependencies, a) ||
                         std::ranges::any_of(program.nodes[b].held, [&](const auto& held) { return held.maker == a; });
    if (!depends && resource_of(kind(a)) != resource_of(kind(b)) && mix(seed, i) % 2 == 0)
      std::swap(order[i], order[i + 1]);
  }
  return order;
}

/// Returns the number of a value among those that came before; adds it if it is new.
template <class Key, class Value>
std::uint32_t slot_of(std::map<Key, std::uint32_t>& slots, const Key& key, std::vector<Value>& values,
                      const Value& value) {
  const auto [found, added] = slots.try_emplace(key, static_cast<std::uint32_t>(values.size()));
  if (added) values.push_back(value);
  return found->second;
}

/// A tensor, and the nodes that list it first and last.
struct Lifetime {
  std::uint32_t first = 0, last = 0;
  TensorUse use;
  std::uint64_t bytes = 0;
};

/// Makes the nodes of a graph and their tables.
class Maker {
 public:
  explicit Maker(const Model& model) : model_(model) {}

  void add(const ProgramNode& from, const Sizes& sizes) {
    const Family& family = model_.families[from.slot->family];
    Graph& graph = made_.structure.graph;
    Node node{};
    node.kind = family.kind;
    node.size = sizes.bytes;
    node.stream = family.stream;
    node.num_dependencies = static_cast<std::uint32_t>(from.dependencies.size());
    if (family.kind == NodeKind::compute) node.detail = sizes.flops;
    if (!family.group.extents.empty()) {
      node.collective = family.collective;
      node.detail = family.dimensions;
      node.slot = slot_of(group_slots_, family.group, made_.groups, family.group);
    }
    if (!family.peer.empty()) {
      node.slot = slot_of(peer_slots_, {family.kind, family.peer}, made_.peers, family.peer);
      node.detail = slot_of(tag_slots_, {family.kind, from.slot->channel}, made_.structure.tags,
                            std::uint64_t{from.slot->channel});
    }
    graph.num_streams = std::max<std::uint32_t>(graph.num_streams, family.stream);
    graph.durations.push_back(Time::from_ps(sizes.ps));
    graph.priorities.push_back(family.priority);
    made_.structure.names.push_back(fmt::format("op{}", graph.nodes.size()));
    graph.nodes.push_back(node);
  }

  /// Lists tensors: [tensors] the nodes that list each first and last, and its bytes.
  void list(std::span<const Lifetime> tensors) {
    struct Listed {
      std::uint32_t node, tensor;
      bool makes, needs;
    };
    std::vector<Listed> listed;
    for (std::uint32_t t = 0; t < tensors.size(); ++t) {
      const Lifetime& of = tensors[t];
      listed.push_back({of.first, t, of.use.first_makes, of.use.first_needs});
      if (of.last != of.first) listed.push_back({of.last, t, of.use.last_makes, of.use.last_needs});
    }
    std::ranges::stable_sort(listed, {}, [](const Listed& entry) { return std::pair(entry.node, entry.makes); });
    trace::Tensors& made = made_.structure.graph.tensors;
    std::vector<std::uint32_t> number(tensors.size());
    made.first.assign(made_.structure.graph.nodes.size() + 1, 0);
    for (const Listed& entry : listed) {
      if (entry.node == tensors[entry.tensor].first) {
        number[entry.tensor] = static_cast<std::uint32_t>(made.sizes.size());
        made.sizes.push_back(tensors[entry.tensor].bytes);
        made.num_listings.push_back(0);
        made_.structure.tensor_names.push_back(fmt::format("t{}", number[entry.tensor]));
      }
      ++made.num_listings[number[entry.tensor]];
      made.listings.push_back({number[entry.tensor] & (trace::most_tensors - 1), entry.needs, entry.makes});
      ++made.first[entry.node + 1];
    }
    for (std::size_t i = 1; i < made.first.size(); ++i) made.first[i] += made.first[i - 1];
    if (listed.empty()) made = {};
  }

  /// Ends the graph. `successors`: [nodes], each ascending.
  RoleStructure finish(const std::vector<std::vector<std::uint32_t>>& successors) {
    Graph& graph = made_.structure.graph;
    for (std::size_t i = 0; i < successors.size(); ++i) {
      graph.nodes[i].first_successor = static_cast<std::uint32_t>(graph.successors.size());
      graph.successors.insert(graph.successors.end(), successors[i].begin(), successors[i].end());
    }
    graph.nodes.push_back(Node{});
    graph.nodes.back().first_successor = static_cast<std::uint32_t>(graph.successors.size());
    if (std::ranges::all_of(graph.durations, [](Time time) { return time == Time::zero(); })) graph.durations.clear();
    if (std::ranges::all_of(graph.priorities, [](std::int32_t p) { return p == 0; })) graph.priorities.clear();
    graph.num_group_slots = static_cast<std::uint32_t>(made_.groups.size());
    graph.num_peer_slots = static_cast<std::uint32_t>(made_.peers.size());
    graph.num_tag_slots = static_cast<std::uint32_t>(made_.structure.tags.size());
    return std::move(made_);
  }

 private:
  const Model& model_;
  RoleStructure made_;
  std::map<GroupShape, std::uint32_t> group_slots_;
  std::map<std::pair<NodeKind, Offsets>, std::uint32_t> peer_slots_;
  std::map<std::pair<NodeKind, std::uint32_t>, std::uint32_t> tag_slots_;
};

}  // namespace

RoleStructure make_structure(const Model& model, const ScaledProgram& program, std::span<const Sizes> sizes,
                             const TensorSizes& tensor_size, std::uint64_t seed) {
  const std::vector<std::uint32_t> order = shuffled(model, program, seed);
  std::vector<std::uint32_t> place(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<std::vector<std::uint32_t>> successors(order.size());
  std::vector<Lifetime> tensors;
  Maker maker(model);
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    const ProgramNode& node = program.nodes[order[i]];
    maker.add(node, sizes[order[i]]);
    for (const auto source : node.dependencies) successors[place[source]].push_back(i);
    for (const ScaledTensor& held : node.held)
      tensors.push_back({place[held.maker], i, held.source->use, tensor_size(*held.source)});
  }
  maker.list(tensors);
  return maker.finish(successors);
}

}  // namespace orrery::synthesis
