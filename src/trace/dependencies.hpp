#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/trace/store.hpp"
#include "parsed_trace.hpp"

namespace orrery::trace {

/// The nodes of a trace in ascending order of their ids: the value of a NodeId is a position in this order.
class NodeOrder {
 public:
  /// Orders the nodes. A node with the id of another one is a fault. Cost O(n log n); O(n) if the file is in order.
  NodeOrder(const ParsedTrace& parsed, Faults& faults);

  std::uint32_t size() const { return static_cast<std::uint32_t>(index_in_file_.size()); }
  /// Says whether ids tell all nodes apart.
  bool has_unique_ids() const { return has_unique_ids_; }
  /// Returns the index of a node in ParsedTrace::nodes.
  std::uint32_t index_in_file(std::uint32_t node) const { return index_in_file_[node]; }
  /// Returns the node with an id of the trace. O(log n), or O(1) if the ids are dense.
  std::optional<std::uint32_t> find(std::uint64_t id) const;

 private:
  std::vector<std::uint32_t> index_in_file_;
  std::vector<std::uint64_t> ids_;     ///< ascending
  std::vector<std::uint32_t> direct_;  ///< id less the first id -> node, if the ids are dense enough; else empty
  bool has_unique_ids_ = true;
};

/// The dependencies of a trace that its policy chose, between NodeIds, each once and without a cycle.
struct Edges {
  explicit Edges(std::uint32_t num_nodes) : first_successor(num_nodes + 1), num_dependencies(num_nodes) {}

  std::vector<std::uint32_t> first_successor;   ///< [num_nodes + 1]
  std::vector<std::uint32_t> successors;        ///< ascending per node
  std::vector<std::uint32_t> num_dependencies;  ///< [num_nodes]
  std::uint64_t num_absent = 0;  ///< dependencies on nodes that the trace does not hold, which are left out
  std::uint32_t absent_of = 0;   ///< the first node with such a dependency
  std::uint64_t absent_id = 0;   ///< the id on which that node depends
  std::string decision;          ///< the decision of `automatic` against using both fields; else empty
};

/// Applies the policy. Throws Error (bad_input) with the cycle printed if the chosen dependencies have one.
/// Cost O(nodes + dependencies).
Edges order_nodes(const ParsedTrace& parsed, const NodeOrder& order, Dependencies policy);

}  // namespace orrery::trace
