#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::trace {

/// The structure of traces that are made instead of read. Groups and peers are numbers that the caller chooses; which
/// groups and NPUs they stand for depends on the NPU.
struct Structure {
  Graph graph;
  std::vector<std::string> names;         ///< [num_nodes]
  std::vector<std::uint32_t> groups;      ///< [num_group_slots]
  std::vector<std::uint32_t> peers;       ///< [num_peer_slots]
  std::vector<std::uint64_t> tags;        ///< [num_tag_slots]
  std::vector<std::string> tensor_names;  ///< [num_tensors]
};

/// Makes a structure node by node, in ascending order of ids. A node may depend on earlier ones only, which rules out
/// cycles. The graph is the same as after writing the trace and reading it: slots are in the order of their first use.
class Builder {
 public:
  using Dependencies = std::span<const NodeId>;

  /// Adds a compute node. `recorded` is the duration that counts without a roofline.
  NodeId compute(std::string name, std::uint64_t num_ops, Bytes tensor_size, Dependencies dependencies,
                 Time recorded = Time::zero());
  /// Adds a collective. `size` is that of comm_size, in bytes, positive: the shard of an all-gather, otherwise the
  /// whole buffer of a member. `priority` is that of comm_priority.
  NodeId collective(std::string name, CollectiveKind kind, Bytes size, std::uint32_t group, Dependencies dependencies,
                    std::int32_t priority = 0);
  /// Adds an access to remote memory by the NPU alone. `kind` is mem_load or mem_store; `size` is positive.
  NodeId access(std::string name, NodeKind kind, Bytes size, Dependencies dependencies);
  /// Adds an access by all members of a group: a load with an all-gather, a store with a reduce-scatter or an
  /// all-reduce (docs/memory.md).
  NodeId access(std::string name, NodeKind kind, Bytes size, CollectiveKind collective, std::uint32_t group,
                Dependencies dependencies);
  /// Adds a message to or from a peer. `size` is positive.
  NodeId send(std::string name, std::uint32_t peer, std::uint64_t tag, Bytes size, Dependencies dependencies);
  NodeId receive(std::string name, std::uint32_t peer, std::uint64_t tag, Bytes size, Dependencies dependencies);

  /// Returns the number of nodes so far.
  std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(structure_.names.size()); }

  /// Lets NPUs note when this node ends. Each such node depends on the one before, at least through others.
  void mark(NodeId node) { structure_.graph.milestones.push_back(node.value()); }

  /// Returns the number of the tensor with this name, for `list`. `size` is positive, and the same whenever the name is
  /// the same. A tensor that no node lists is left out of the structure.
  std::uint32_t tensor(std::string name, Bytes size);
  /// Returns the number of a new tensor. Its name ends in a number if another tensor has the name: "x.2", "x.3".
  std::uint32_t new_tensor(const std::string& name, Bytes size);
  /// Lists a tensor among the inputs of a node (`needs`), its outputs (`makes`), or both. Calls for the same node and
  /// tensor add up.
  void list(NodeId node, std::uint32_t tensor, bool needs, bool makes);

  /// Returns the structure and leaves the builder empty. O(nodes + dependencies + listings log listings).
  Structure finish();

 private:
  NodeId add(std::string name, Node node, Dependencies dependencies);
  NodeId of_group(std::string name, Node node, CollectiveKind collective, std::uint32_t group,
                  Dependencies dependencies);
  NodeId message(std::string name, NodeKind kind, std::uint32_t peer, std::uint64_t tag, Bytes size,
                 Dependencies dependencies);
  void finish_tensors();

  struct Tensor {
    std::string name;
    Bytes size;
  };
  struct Listed {
    NodeId node;
    std::uint32_t tensor;
    bool makes;
  };

  Structure structure_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;  ///< (from, to)
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, std::uint32_t> tensor_of_name_, tensors_with_name_;
  std::vector<Listed> listed_;
  std::map<std::uint32_t, std::uint32_t> group_slots_;
  std::map<std::pair<NodeKind, std::uint32_t>, std::uint32_t> peer_slots_;  ///< sends and receives apart
  std::map<std::pair<NodeKind, std::uint64_t>, std::uint32_t> tag_slots_;
};

}  // namespace orrery::trace
