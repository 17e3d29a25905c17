#include "shared_parts.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>

#include "orrery/base/mix_all.hpp"

namespace orrery::trace {
namespace {

bool operator==(const Node& a, const Node& b) { return std::memcmp(&a, &b, sizeof(Node)) == 0; }

bool same(const Graph& a, const Graph& b) {
  const auto equal = [](const Node& x, const Node& y) { return x == y; };
  return a.num_group_slots == b.num_group_slots && a.num_peer_slots == b.num_peer_slots &&
         a.num_tag_slots == b.num_tag_slots && a.num_streams == b.num_streams && a.milestones == b.milestones &&
         std::ranges::equal(a.nodes, b.nodes, equal) && a.successors == b.successors && a.durations == b.durations &&
         a.priorities == b.priorities && a.customs == b.customs && a.tensors == b.tensors;
}

bool same(const Labels& a, const Labels& b) { return a.ids == b.ids && a.names == b.names && a.tensors == b.tensors; }

std::uint64_t hash_of(const Graph& graph) {
  std::uint64_t hash = mix(mix(graph.num_group_slots, graph.num_peer_slots), graph.num_tag_slots);
  hash = mix_all(hash, std::span(graph.nodes));
  hash = mix_all(hash, std::span(graph.successors));
  hash = mix_all(mix_all(hash, std::span(graph.durations)), std::span(graph.priorities));
  hash = mix_all(hash, std::span(graph.customs));
  hash = mix_all(hash, std::span(graph.tensors.sizes));
  return mix_all(mix_all(hash, std::span(graph.tensors.first)), std::span(graph.tensors.listings));
}

std::uint64_t hash_of(const Labels& labels) {
  return mix_all(mix_all(mix_all(0, std::span(labels.ids)), std::span(labels.names)), std::span(labels.tensors));
}

/// Returns the value of the table that is equal to this one, and adds it if need be.
template <class Table, class Value>
std::shared_ptr<const Value> keep_once(Table& table, Value&& value) {
  const std::uint64_t hash = hash_of(value);
  const auto [begin, end] = table.equal_range(hash);
  for (auto at = begin; at != end; ++at)
    if (same(*at->second, value)) return at->second;
  return table.emplace(hash, std::make_shared<const Value>(std::move(value)))->second;
}

/// Removes the values that nobody else holds. Returns where they were.
template <class Table>
auto remove_unused(Table& table) {
  std::set<typename Table::mapped_type::element_type*> removed;
  std::erase_if(table, [&](const auto& entry) {
    return entry.second.use_count() == 1 && removed.insert(entry.second.get()).second;
  });
  return removed;
}

}  // namespace

SharedParts::Parts SharedParts::keep(Graph graph, Labels labels) {
  Parts parts{keep_once(graphs_, std::move(graph)), keep_once(labels_, std::move(labels))};
  structures_.emplace(parts.graph.get(), parts.labels.get());
  return parts;
}

void SharedParts::free_unused() {
  const auto graphs = remove_unused(graphs_);
  const auto labels = remove_unused(labels_);
  std::erase_if(structures_,
                [&](const auto& pair) { return graphs.contains(pair.first) || labels.contains(pair.second); });
}

std::size_t SharedParts::bytes() const {
  std::size_t total = 0;
  for (const auto& [hash, graph] : graphs_) total += graph->bytes();
  for (const auto& [hash, labels] : labels_)
    total += labels->ids.capacity() * sizeof(std::uint64_t) +
             (labels->names.capacity() + labels->tensors.capacity()) * sizeof(std::uint32_t);
  return total;
}

}  // namespace orrery::trace
