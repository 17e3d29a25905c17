#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery {

/// The nodes of a graph in an order in which dependencies come first; it lacks those that are in a cycle or behind one.
/// `missing`: [nodes] number of dependencies of each; left with those that remain, so 0 for each node of the order.
/// `for_each_successor(node, visit)` calls visit(successor) once for each dependency on `node`. O(nodes +
/// dependencies).
template <class ForEachSuccessor>
std::vector<std::uint32_t> topological_order(std::vector<std::uint32_t>& missing, ForEachSuccessor for_each_successor) {
  std::vector<std::uint32_t> order;
  order.reserve(missing.size());
  for (std::uint32_t node = 0; node < missing.size(); ++node)
    if (missing[node] == 0) order.push_back(node);
  for (std::size_t k = 0; k < order.size(); ++k)
    for_each_successor(order[k], [&](std::uint32_t successor) {
      if (--missing[successor] == 0) order.push_back(successor);
    });
  return order;
}

}  // namespace orrery
