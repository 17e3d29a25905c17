#pragma once

#include <cstdint>
#include <vector>

namespace orrery::check {

/// The collectives of one member in one group, within the graph of its trace.
struct Calls {
  std::vector<std::uint32_t> first_successor;  ///< [num_nodes + 1]
  std::vector<std::uint32_t> successors;
  std::vector<std::uint32_t> nodes;   ///< nodes of the collectives, in an order that the dependencies allow
  std::vector<std::uint64_t> labels;  ///< [nodes] equal for collectives of the same kind and size
};

/// A member's dependencies put collective `first` before collective `then` (indices into Calls::nodes).
struct Before {
  bool of_second_member = false;
  std::uint32_t first = 0, then = 0;
};

/// Whether the dependencies of two members, who do the same collectives, leave an order that suits both. Empty if they
/// do, else steps that form a cycle: the `then` of one is the same collective as the `first` of the next.
///
/// Two nodes are taken for the same collective if each is the only one of its label in its member, or the k-th of its
/// label where dependencies order all collectives of each member. What else may meet is decided by the run. With such
/// nodes of the two graphs made one, a common order exists if and only if the joined graph has no cycle.
/// Cost O(nodes + dependencies + collectives log collectives).
std::vector<Before> find_contradiction(const Calls& a, const Calls& b);

}  // namespace orrery::check
