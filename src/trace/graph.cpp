#include "orrery/trace/graph.hpp"

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/topological_order.hpp"
#include "source.hpp"

namespace orrery::trace {

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
    case CollectiveKind::expert_dispatch:
      return "expert-dispatch";
    case CollectiveKind::expert_combine:
      return "expert-combine";
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
