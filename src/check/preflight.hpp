#pragma once

#include <map>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/check/checks.hpp"
#include "orrery/trace/graph.hpp"

/// What checks have in common.
namespace orrery::check {

/// The nodes of a structure for which a condition holds, found once for all NPUs that share the structure.
template <class Condition>
class NodesWhere {
 public:
  explicit NodesWhere(Condition condition) : condition_(std::move(condition)) {}

  /// Returns the nodes in ascending order. O(nodes) for a new structure.
  const std::vector<NodeId>& of(const trace::Graph& graph) {
    const auto [found, added] = known_.try_emplace(&graph);
    for (std::uint32_t i = 0; added && i < graph.num_nodes(); ++i)
      if (condition_(graph.nodes[i])) found->second.push_back(NodeId(i));
    return found->second;
  }

 private:
  Condition condition_;
  std::map<const trace::Graph*, std::vector<NodeId>> known_;
};

/// Returns the place of a node of a checked NPU, for messages.
inline Place place_of(const Subject& subject, const npu::NpuSpec& npu, NodeId node) {
  return subject.store.place(*npu.trace, npu.id, node);
}

/// Returns for each NPU of the run whether it is checked: [num_npus]. What the others do is not known: their traces
/// could not be read, or they are left out. Collective.
std::vector<char> checked_npus(const Subject& subject, parallel::Communicator& world);

}  // namespace orrery::check
