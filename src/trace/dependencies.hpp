#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/trace/store.hpp"
#include "parse.hpp"

namespace orrery::trace {

/// The nodes of a trace in ascending order of their ids: a NodeId is a position here.
class NodeOrder {
 public:
  /// Nodes with the id of another one are faults. Cost O(n log n); O(n) if the file is in order.
  NodeOrder(const RawTrace& raw, const Source& source, const NamePool& names, Faults& faults);

  std::uint32_t size() const { return static_cast<std::uint32_t>(raw_index_.size()); }
  /// The position in the file of a node.
  std::uint32_t raw_index(std::uint32_t node) const { return raw_index_[node]; }
  /// The node with an id of the trace.
  std::optional<std::uint32_t> find(std::uint64_t id) const;

 private:
  std::vector<std::uint32_t> raw_index_;
  std::vector<std::uint64_t> ids_;     ///< ascending
  std::vector<std::uint32_t> direct_;  ///< id less the first id -> node, if the ids are dense enough; else empty
};

/// The chosen dependencies of a trace, between NodeIds, each once, and proved to be free of cycles.
struct Edges {
  explicit Edges(std::uint32_t num_nodes) : first_successor(num_nodes + 1), num_dependencies(num_nodes) {}

  std::vector<std::uint32_t> first_successor;   ///< [num_nodes + 1]
  std::vector<std::uint32_t> successors;        ///< ascending per node
  std::vector<std::uint32_t> num_dependencies;  ///< [num_nodes]
  std::uint64_t num_absent = 0;                 ///< dependencies on nodes that the trace does not hold; left out
  std::uint32_t absent_of = 0;                  ///< the first node with such a dependency,
  std::uint64_t absent_id = 0;                  ///< and on what
  std::string decision;                         ///< what `automatic` decided if not for both; else empty
};

/// Applies the policy. Throws Error (bad_input) with the cycle printed if the chosen dependencies have one.
/// Cost O(nodes + dependencies).
Edges order_nodes(const RawTrace& raw, const NodeOrder& order, Dependencies policy, const Source& source,
                  const NamePool& names);

}  // namespace orrery::trace
