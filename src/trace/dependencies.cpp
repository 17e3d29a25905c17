#include "dependencies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "orrery/base/topological_order.hpp"

namespace orrery::trace {
namespace {

constexpr std::uint32_t no_node = std::numeric_limits<std::uint32_t>::max();
/// Ids are looked up in a table if there are at most this many for each node, else by binary search.
constexpr std::uint64_t table_sparsity = 16;
constexpr std::size_t longest_printed_cycle = 8;

/// Holds the dependencies of each node as NodeIds, ascending, each once.
struct DependencyLists {
  std::vector<std::uint32_t> first;  ///< [num_nodes + 1]
  std::vector<std::uint32_t> nodes;

  std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(nodes).subspan(first[node], first[node + 1] - first[node]);
  }
};

DependencyLists collect(const ParsedTrace& parsed, const NodeOrder& order, Dependencies which, Edges& edges) {
  DependencyLists lists;
  lists.first.reserve(order.size() + 1);
  lists.nodes.reserve((which == Dependencies::data ? 0 : parsed.ctrl.size()) +
                      (which == Dependencies::ctrl ? 0 : parsed.data.size()));
  edges.num_absent = 0;
  for (std::uint32_t node = 0; node < order.size(); ++node) {
    const std::size_t begin = lists.nodes.size();
    lists.first.push_back(static_cast<std::uint32_t>(begin));
    const auto add = [&](std::span<const std::uint64_t> ids) {
      for (const std::uint64_t id : ids) {
        const auto found = order.find(id);
        if (found) {
          lists.nodes.push_back(*found);
        } else if (edges.num_absent++ == 0) {
          edges.absent_of = node;
          edges.absent_id = id;
        }
      }
    };
    const std::size_t index = order.index_in_file(node);
    if (which != Dependencies::data) add(parsed.entries_of(parsed.ctrl, index, &ParsedNode::first_ctrl));
    if (which != Dependencies::ctrl) add(parsed.entries_of(parsed.data, index, &ParsedNode::first_data));
    if (lists.nodes.size() - begin < 2) continue;
    const auto own = lists.nodes.begin() + static_cast<std::ptrdiff_t>(begin);
    std::sort(own, lists.nodes.end());
    lists.nodes.erase(std::unique(own, lists.nodes.end()), lists.nodes.end());
  }
  ensure(lists.nodes.size() < no_node, "more than 2^32 dependencies in one trace");
  lists.first.push_back(static_cast<std::uint32_t>(lists.nodes.size()));
  return lists;
}

void invert(const DependencyLists& lists, Edges& edges) {
  const std::size_t num_nodes = lists.first.size() - 1;
  edges.first_successor.assign(num_nodes + 1, 0);
  edges.num_dependencies.resize(num_nodes);
  for (const std::uint32_t dependency : lists.nodes) ++edges.first_successor[dependency];
  std::exclusive_scan(edges.first_successor.begin(), edges.first_successor.end(), edges.first_successor.begin(), 0u);
  std::vector<std::uint32_t> next(edges.first_successor.begin(), edges.first_successor.end() - 1);
  edges.successors.resize(lists.nodes.size());
  for (std::uint32_t node = 0; node < num_nodes; ++node) {
    edges.num_dependencies[node] = lists.first[node + 1] - lists.first[node];
    for (const std::uint32_t dependency : lists.of(node)) edges.successors[next[dependency]++] = node;
  }
}

/// Returns how many dependencies of each node remain when everything that can complete has completed: 0 for all nodes
/// if there is no cycle.
std::vector<std::uint32_t> remaining_dependencies(const Edges& edges) {
  std::vector<std::uint32_t> left = edges.num_dependencies;
  topological_order(left, [&](std::uint32_t node, auto visit) {
    for (std::uint32_t at = edges.first_successor[node]; at < edges.first_successor[node + 1]; ++at)
      visit(edges.successors[at]);
  });
  return left;
}

/// Returns a cycle among the nodes that remain, from its lowest id on; each node is followed by one that waits for it.
/// A node that remains depends on another that remains, so following such dependencies comes back to a node seen
/// before: the result is empty only if nothing remains.
std::vector<std::uint32_t> find_cycle(const DependencyLists& lists, std::span<const std::uint32_t> left) {
  const auto start = std::ranges::find_if(left, [](std::uint32_t count) { return count > 0; });
  if (start == left.end()) return {};
  std::vector<std::uint32_t> position(left.size(), no_node);
  std::vector<std::uint32_t> path;
  auto node = static_cast<std::uint32_t>(start - left.begin());
  while (position[node] == no_node) {
    position[node] = static_cast<std::uint32_t>(path.size());
    path.push_back(node);
    node = *std::ranges::find_if(lists.of(node), [&](std::uint32_t dependency) { return left[dependency] > 0; });
  }
  path.erase(path.begin(), path.begin() + position[node]);
  std::ranges::reverse(path);
  std::ranges::rotate(path, std::ranges::min_element(path));
  return path;
}

std::string print_cycle(std::span<const std::uint32_t> cycle, const ParsedTrace& parsed, const NodeOrder& order) {
  const auto one = [&](std::uint32_t node) {
    const ParsedNode& its = parsed.nodes[order.index_in_file(node)];
    return fmt::format("{} '{}' -> ", its.id, parsed.shown_name(its));
  };
  const bool whole = cycle.size() <= longest_printed_cycle;
  const std::size_t head = whole ? cycle.size() : longest_printed_cycle - 2;
  std::string text;
  for (const std::uint32_t node : cycle.first(head)) text += one(node);
  if (!whole) {
    text += fmt::format("... {} more ... -> ", cycle.size() - head - 1);
    text += one(cycle.back());
  }
  text += one(cycle.front());
  text.resize(text.size() - std::string_view(" -> ").size());
  return text;
}

/// Fills in the edges of one policy and returns a cycle, which is empty if there is none.
std::vector<std::uint32_t> try_policy(const ParsedTrace& parsed, const NodeOrder& order, Dependencies which,
                                      Edges& edges) {
  const DependencyLists lists = collect(parsed, order, which, edges);
  invert(lists, edges);
  return find_cycle(lists, remaining_dependencies(edges));
}

std::string_view fields_of(Dependencies which) {
  if (which == Dependencies::data) return "data_deps";
  return which == Dependencies::ctrl ? "ctrl_deps" : "data_deps and ctrl_deps";
}

}  // namespace

NodeOrder::NodeOrder(const ParsedTrace& parsed, Faults& faults) {
  const std::size_t num_nodes = parsed.nodes.size();
  const auto id_of = [&parsed](std::uint32_t index) { return parsed.nodes[index].id; };
  index_in_file_.resize(num_nodes);
  std::iota(index_in_file_.begin(), index_in_file_.end(), 0u);
  if (!std::ranges::is_sorted(index_in_file_, std::less<>{}, id_of)) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> keyed(num_nodes);
    for (std::uint32_t index = 0; index < num_nodes; ++index) keyed[index] = {id_of(index), index};
    std::ranges::sort(keyed);
    for (std::size_t at = 0; at < num_nodes; ++at) index_in_file_[at] = keyed[at].second;
  }
  ids_.reserve(num_nodes);
  for (const std::uint32_t index : index_in_file_) ids_.push_back(id_of(index));
  std::size_t first = 0;  // node with the id at hand
  for (std::size_t at = 1; at < ids_.size(); ++at) {
    if (ids_[at] != ids_[first]) first = at;
    if (at == first) continue;
    has_unique_ids_ = false;
    const ParsedNode& other = parsed.nodes[index_in_file_[first]];
    faults.add(Error(ErrorCode::bad_input, parsed.place(parsed.nodes[index_in_file_[at]]),
                     fmt::format("the id is used twice; the other is '{}' at {} {}", parsed.shown_name(other),
                                 parsed.position_unit == PositionUnit::byte ? "byte" : "line", other.position),
                     "an id per node"));
  }
  if (ids_.empty() || ids_.back() - ids_.front() >= table_sparsity * num_nodes) return;
  direct_.assign(ids_.back() - ids_.front() + 1, no_node);
  for (std::uint32_t node = 0; node < num_nodes; ++node) direct_[ids_[node] - ids_.front()] = node;
}

std::optional<std::uint32_t> NodeOrder::find(std::uint64_t id) const {
  if (!direct_.empty()) {
    const std::uint64_t at = id - ids_.front();  // wraps to a large number below the first
    if (at >= direct_.size() || direct_[at] == no_node) return std::nullopt;
    return direct_[at];
  }
  const auto found = std::ranges::lower_bound(ids_, id);
  if (found == ids_.end() || *found != id) return std::nullopt;
  return static_cast<std::uint32_t>(found - ids_.begin());
}

Edges order_nodes(const ParsedTrace& parsed, const NodeOrder& order, Dependencies policy) {
  Edges edges(order.size());
  Dependencies which = policy;
  if (policy == Dependencies::automatic) {
    which = parsed.data.empty() ? Dependencies::ctrl : Dependencies::both;
    if (parsed.data.empty() && !parsed.ctrl.empty())
      edges.decision = "no node has data_deps: ctrl_deps alone order the nodes";
  }
  auto cycle = try_policy(parsed, order, which, edges);
  if (!cycle.empty() && policy == Dependencies::automatic && which == Dependencies::both && !parsed.ctrl.empty()) {
    edges.decision = fmt::format("with ctrl_deps the dependencies have a cycle ({}): data_deps alone order the nodes",
                                 print_cycle(cycle, parsed, order));
    which = Dependencies::data;
    cycle = try_policy(parsed, order, which, edges);
  }
  if (cycle.empty()) return edges;
  throw Error(ErrorCode::bad_input, parsed.place(parsed.nodes[order.index_in_file(cycle.front())]),
              fmt::format("the dependencies have a cycle: {}", print_cycle(cycle, parsed, order)),
              fmt::format("{} without a cycle (A -> B: B waits for A)", fields_of(which)));
}

}  // namespace orrery::trace
