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

/// The structure of traces that are made, not read. Groups and peers are the maker's own numbers; what they stand for
/// depends on the NPU.
struct Structure {
  Graph graph;
  std::vector<std::string> names;         ///< [num_nodes]
  std::vector<std::uint32_t> groups;      ///< [num_group_slots]
  std::vector<std::uint32_t> peers;       ///< [num_peer_slots]
  std::vector<std::uint64_t> tags;        ///< [num_tag_slots]
  std::vector<std::string> tensor_names;  ///< [num_tensors]
};

/// Makes a structure node by node, in ascending order of ids; a node may depend on earlier ones only, which rules out
/// cycles. The graph is the one that reading the written trace gives (slots in the order of first use).
class Builder {
 public:
  using Dependencies = std::span<const NodeId>;

  /// `recorded`: the duration that counts without a roofline.
  NodeId compute(std::string name, std::uint64_t num_ops, Bytes tensor_size, Dependencies dependencies,
                 Time recorded = Time::zero());
  /// `size` as comm_size has it: an all-gather's shard, else the whole buffer of a member; positive.
  NodeId collective(std::string name, CollectiveKind kind, Bytes size, std::uint32_t group, Dependencies dependencies);
  /// `kind` is mem_load or mem_store; `size` positive. By the NPU alone.
  NodeId access(std::string name, NodeKind kind, Bytes size, Dependencies dependencies);
  /// By all members of the group: an all-gather of a load, a reduce-scatter or all-reduce of a store (docs/memory.md).
  NodeId access(std::string name, NodeKind kind, Bytes size, CollectiveKind collective, std::uint32_t group,
                Dependencies dependencies);
  NodeId send(std::string name, std::uint32_t peer, std::uint64_t tag, Bytes size, Dependencies dependencies);
  NodeId receive(std::string name, std::uint32_t peer, std::uint64_t tag, Bytes size, Dependencies dependencies);

  /// The tensor of a name, for `list`; `size` positive, and the same for the same name. One that no node lists is left
  /// out of the structure.
  std::uint32_t tensor(std::string name, Bytes size);
  /// A node has a tensor among its inputs (`needs`), its outputs (`makes`), or both; what is said of one node and
  /// tensor adds up.
  void list(NodeId node, std::uint32_t tensor, bool needs, bool makes);

  /// Leaves the builder empty. O(nodes + dependencies + listings log listings).
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
  std::unordered_map<std::string, std::uint32_t> tensor_of_name_;
  std::vector<Listed> listed_;
  std::map<std::uint32_t, std::uint32_t> group_slots_;
  std::map<std::pair<NodeKind, std::uint32_t>, std::uint32_t> peer_slots_;  ///< of sends and receives apart
  std::map<std::pair<NodeKind, std::uint64_t>, std::uint32_t> tag_slots_;
};

}  // namespace orrery::trace
