#include "types.hpp"

#include <fmt/format.h>

#include <array>

#include "orrery/base/topological_order.hpp"
#include "parse.hpp"

namespace orrery::trace {
namespace {

constexpr std::uint32_t num_node_types = 8;
constexpr std::uint64_t reduce_scatter_block = 8;
constexpr std::uint64_t last_collective = 9;

}  // namespace

std::optional<NodeType> node_type(Layout layout, std::uint32_t number) {
  const bool has_metadata = layout == Layout::today || layout == Layout::v0_0_3;
  if (!has_metadata && number >= 1 && number < num_node_types) ++number;
  if (number >= num_node_types) return std::nullopt;
  return static_cast<NodeType>(number);
}

std::string describe_node_type(std::uint32_t number) {
  constexpr std::array<std::string_view, 3> proposed = {"storage", "batch", "checkpoint"};
  if (number >= num_node_types && number < num_node_types + proposed.size())
    return fmt::format("node type {} ({}) is not supported", number, proposed[number - num_node_types]);
  return fmt::format("node type {} is not known", number);
}

std::optional<CollectiveKind> collective_kind(Layout layout, std::uint64_t number) {
  using enum CollectiveKind;
  constexpr std::array older = {all_reduce, all_to_all, all_gather, reduce_scatter, broadcast};
  if (layout == Layout::today) {
    if (number > last_collective) return std::nullopt;
    return number == reduce_scatter_block ? reduce_scatter : static_cast<CollectiveKind>(number);
  }
  if (layout == Layout::v0_0_1) {  // INVALID is 0, and there is no broadcast
    if (number == 0 || number >= older.size()) return std::nullopt;
    return older[number - 1];
  }
  if (number >= older.size()) return std::nullopt;
  return older[number];
}

std::string_view name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
      return "all-reduce";
    case CollectiveKind::reduce:
      return "reduce";
    case CollectiveKind::all_gather:
      return "all-gather";
    case CollectiveKind::gather:
      return "gather";
    case CollectiveKind::scatter:
      return "scatter";
    case CollectiveKind::broadcast:
      return "broadcast";
    case CollectiveKind::all_to_all:
      return "all-to-all";
    case CollectiveKind::reduce_scatter:
      return "reduce-scatter";
    case CollectiveKind::barrier:
      return "barrier";
  }
  ensure(false, "unknown collective");
  return {};
}

std::string name(NodeKind kind, CollectiveKind collective) {
  if (kind == NodeKind::collective) return std::string(trace::name(collective));
  return fmt::format("{} with {}", kind == NodeKind::mem_load ? "load" : "store", trace::name(collective));
}

std::string describe(const Group& group) {
  return group.name.empty() ? std::string("all NPUs") : fmt::format("group '{}'", shown(group.name));
}

std::vector<std::uint32_t> Graph::topological_order() const {
  std::vector<std::uint32_t> missing(num_nodes());
  for (std::uint32_t i = 0; i < num_nodes(); ++i) missing[i] = nodes[i].num_dependencies;
  auto order = orrery::topological_order(missing, [&](std::uint32_t node, auto visit) {
    for (const auto successor : successors_of(NodeId(node))) visit(successor);
  });
  ensure(order.size() == num_nodes(), "a graph with a cycle");
  return order;
}

std::vector<bool> Tensors::has_maker() const {
  std::vector<bool> made(sizes.size(), false);
  for (const Listing listing : listings)
    if (listing.makes && !listing.needs) made[listing.tensor] = true;
  return made;
}

std::size_t Tensors::bytes() const {
  return sizes.capacity() * sizeof(std::uint64_t) +
         (num_listings.capacity() + first.capacity()) * sizeof(std::uint32_t) + listings.capacity() * sizeof(Listing);
}

std::size_t Graph::bytes() const {
  return sizeof(Graph) + nodes.capacity() * sizeof(Node) + successors.capacity() * sizeof(std::uint32_t) +
         durations.capacity() * sizeof(Time) + priorities.capacity() * sizeof(std::int32_t) +
         customs.capacity() * sizeof(std::uint32_t) + tensors.bytes();
}

}  // namespace orrery::trace
