#include "orrery/trace/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"
#include "tensor_lists.hpp"

namespace orrery::trace {
namespace {

/// Returns the slot of `key`; adds one for `value` if there is none.
template <class Map, class Value>
std::uint32_t slot(Map& slots, const typename Map::key_type& key, std::vector<Value>& values, Value value) {
  const auto [entry, added] = slots.try_emplace(key, static_cast<std::uint32_t>(values.size()));
  if (added) values.push_back(value);
  return entry->second;
}

Node access_node(NodeKind kind, Bytes size) {
  Node node{};
  node.kind = kind;
  node.size = size.count();
  ensure(node.is_access() && node.size > 0, "an access to memory of a positive size");
  return node;
}

}  // namespace

NodeId Builder::add(std::string name, Node node, Dependencies dependencies) {
  const NodeId id(static_cast<std::uint32_t>(structure_.graph.nodes.size()));
  const auto first = edges_.size();
  for (const NodeId dependency : dependencies) {
    ensure(dependency < id, "a node that depends on itself or on a later one");
    edges_.emplace_back(dependency.value(), id.value());
  }
  const auto own = edges_.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(own, edges_.end());
  edges_.erase(std::unique(own, edges_.end()), edges_.end());
  node.num_dependencies = static_cast<std::uint32_t>(edges_.size() - first);
  structure_.graph.nodes.push_back(node);
  structure_.names.push_back(std::move(name));
  return id;
}

NodeId Builder::compute(std::string name, std::uint64_t num_ops, Bytes tensor_size, Dependencies dependencies,
                        Time recorded) {
  Node node{};
  node.kind = NodeKind::compute;
  node.size = tensor_size.count();
  node.detail = num_ops;
  const NodeId id = add(std::move(name), node, dependencies);
  if (recorded > Time::zero()) {
    structure_.graph.durations.resize(id.index() + 1);
    structure_.graph.durations.back() = recorded;
  }
  return id;
}

NodeId Builder::collective(std::string name, CollectiveKind kind, Bytes size, std::uint32_t group,
                           Dependencies dependencies, std::int32_t priority) {
  ensure(size.count() > 0, "a collective of 0 bytes");
  Node node{};
  node.kind = NodeKind::collective;
  node.size = size.count();
  const NodeId id = of_group(std::move(name), node, kind, group, dependencies);
  if (priority != 0) {
    structure_.graph.priorities.resize(id.index() + 1);
    structure_.graph.priorities.back() = priority;
  }
  return id;
}

NodeId Builder::of_group(std::string name, Node node, CollectiveKind collective, std::uint32_t group,
                         Dependencies dependencies) {
  node.collective = collective;
  node.detail = all_dimensions;
  node.slot = slot(group_slots_, group, structure_.groups, group);
  return add(std::move(name), node, dependencies);
}

NodeId Builder::access(std::string name, NodeKind kind, Bytes size, Dependencies dependencies) {
  return add(std::move(name), access_node(kind, size), dependencies);
}

NodeId Builder::access(std::string name, NodeKind kind, Bytes size, CollectiveKind collective, std::uint32_t group,
                       Dependencies dependencies) {
  return of_group(std::move(name), access_node(kind, size), collective, group, dependencies);
}

NodeId Builder::message(std::string name, NodeKind kind, std::uint32_t peer, std::uint64_t tag, Bytes size,
                        Dependencies dependencies) {
  ensure(size.count() > 0, "a message of 0 bytes");
  Node node{};
  node.kind = kind;
  node.size = size.count();
  node.slot = slot(peer_slots_, {kind, peer}, structure_.peers, peer);
  node.detail = slot(tag_slots_, {kind, tag}, structure_.tags, tag);
  return add(std::move(name), node, dependencies);
}

NodeId Builder::send(std::string name, std::uint32_t peer, std::uint64_t tag, Bytes size, Dependencies dependencies) {
  return message(std::move(name), NodeKind::send, peer, tag, size, dependencies);
}

NodeId Builder::receive(std::string name, std::uint32_t peer, std::uint64_t tag, Bytes size,
                        Dependencies dependencies) {
  return message(std::move(name), NodeKind::receive, peer, tag, size, dependencies);
}

std::uint32_t Builder::tensor(std::string name, Bytes size) {
  ensure(size > Bytes(), "a tensor of 0 bytes");
  const auto [known, added] = tensor_of_name_.try_emplace(name, static_cast<std::uint32_t>(tensors_.size()));
  if (added) tensors_.push_back({std::move(name), size});
  ensure(tensors_[known->second].size == size, "a tensor with two sizes");
  return known->second;
}

std::uint32_t Builder::new_tensor(const std::string& name, Bytes size) {
  std::uint32_t& number = tensors_with_name_[name];
  std::string own = ++number == 1 ? name : fmt::format("{}.{}", name, number);
  while (tensor_of_name_.contains(own)) own = fmt::format("{}.{}", name, ++number);
  return tensor(std::move(own), size);
}

void Builder::list(NodeId node, std::uint32_t tensor, bool needs, bool makes) {
  ensure(node.index() < structure_.graph.nodes.size() && tensor < tensors_.size(),
         "a node or tensor that is not there");
  if (needs) listed_.push_back({node, tensor, false});
  if (makes) listed_.push_back({node, tensor, true});
}

void Builder::finish_tensors() {
  std::ranges::stable_sort(listed_, {}, [](const Listed& entry) { return std::pair(entry.node, entry.makes); });
  TensorLists lists;
  for (const Listed& entry : listed_)
    lists.list(entry.node.value(), entry.tensor, tensors_[entry.tensor].size, entry.makes);
  for (const auto tensor : lists.keys()) structure_.tensor_names.push_back(std::move(tensors_[tensor].name));
  structure_.graph.tensors = lists.finish(static_cast<std::uint32_t>(structure_.graph.nodes.size()));
}

Structure Builder::finish() {
  finish_tensors();
  Graph& graph = structure_.graph;
  if (!graph.durations.empty()) graph.durations.resize(graph.nodes.size());
  if (!graph.priorities.empty()) graph.priorities.resize(graph.nodes.size());
  graph.nodes.push_back(Node{});
  // Edges are in the order of their ends: a stable sort by their starts leaves the successors of each node ascending.
  std::vector<std::uint32_t> next(graph.nodes.size(), 0);
  for (const auto& [from, to] : edges_) ++next[from + 1];
  for (std::size_t i = 1; i < next.size(); ++i) next[i] += next[i - 1];
  for (std::size_t i = 0; i < next.size(); ++i) graph.nodes[i].first_successor = next[i];
  graph.successors.resize(edges_.size());
  for (const auto& [from, to] : edges_) graph.successors[next[from]++] = to;
  graph.num_group_slots = static_cast<std::uint32_t>(structure_.groups.size());
  graph.num_peer_slots = static_cast<std::uint32_t>(structure_.peers.size());
  graph.num_tag_slots = static_cast<std::uint32_t>(structure_.tags.size());
  Structure result = std::move(structure_);
  *this = Builder();
  return result;
}

}  // namespace orrery::trace
