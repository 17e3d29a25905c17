#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::trace {

enum class NodeKind : std::uint8_t {
  instant,  ///< METADATA, INVALID and communication of size 0: completes when it is released, holds no resource
  cpu,      ///< host work: takes its recorded duration on the CPU
  compute,  ///< roofline or recorded duration on the compute resource
  collective,
  send,
  receive,
  mem_load,
  mem_store,
  host,  ///< as cpu, beside streams of a GPU: it hides nothing that is in progress there
};

/// Chakra's collective types, in the numbering of its current schema.
enum class CollectiveKind : std::uint8_t {
  all_reduce = 0,
  reduce = 1,
  all_gather = 2,
  gather = 3,
  scatter = 4,
  broadcast = 5,
  all_to_all = 6,
  reduce_scatter = 7,  ///< REDUCE_SCATTER_BLOCK (8) reads as this too
  barrier = 9,
  expert_dispatch = 32,  ///< not Chakra's: tokens to their experts
  expert_combine = 33,   ///< not Chakra's: what the experts make of tokens, back to these
};

/// Returns the name of a collective: "all-reduce", "barrier", ...
std::string_view name(CollectiveKind kind);

/// Returns the name of a node of a group: "all-reduce", or "load with all-gather".
std::string name(NodeKind kind, CollectiveKind collective);

/// One node of an execution trace; 32 bytes. It has nothing that differs between NPUs that share a structure: it refers
/// to groups, peers and tags by slots of the NPU's own tables (NpuTrace).
struct Node {
  std::uint64_t size;  ///< bytes: tensor_size of compute and memory nodes, comm_size of communication
  /// Of a compute node: FLOPs. Of a collective or an access of a group: bit d is set if dimension d takes part. Of
  /// another access: 0. Of a send or receive: tag slot.
  std::uint64_t detail;
  std::uint32_t first_successor;  ///< index into Graph::successors; they end before the next node's first
  std::uint32_t num_dependencies;
  std::uint32_t slot;  ///< collective, access of a group: group slot; send and receive: peer slot
  NodeKind kind;
  CollectiveKind collective;  ///< kind of a collective, and of an access of a group
  std::uint16_t stream = 0;   ///< 1 .. num_streams: nodes of a stream take turns and hold no resource; 0: no stream

  /// Says whether the node accesses remote memory.
  bool is_access() const { return kind == NodeKind::mem_load || kind == NodeKind::mem_store; }
  /// Says whether the members of a group execute it together: a collective, or an access that switches on the path
  /// carry out as one.
  bool is_of_group() const { return kind == NodeKind::collective || (is_access() && detail != 0); }
};
static_assert(sizeof(Node) == 32);

constexpr std::uint64_t all_dimensions = ~std::uint64_t{0};

/// The use of a tensor by a node. A tensor that it needs and makes is updated in place.
struct Listing {
  std::uint32_t tensor : 30;
  std::uint32_t needs : 1;  ///< among its inputs
  std::uint32_t makes : 1;  ///< among its outputs

  friend bool operator==(const Listing&, const Listing&) = default;
};
static_assert(sizeof(Listing) == 4);
constexpr std::uint32_t most_tensors = std::uint32_t{1} << 30;

/// The tensors of the local memory, in the order in which nodes list them first, inputs before outputs. All vectors are
/// empty if no node lists a tensor.
struct Tensors {
  std::vector<std::uint64_t> sizes;         ///< [num_tensors] bytes, positive; Bytes::most() at most in all
  std::vector<std::uint32_t> num_listings;  ///< [num_tensors] number of nodes that list it, 1 or more
  std::vector<std::uint32_t> first;         ///< [num_nodes + 1] index into listings
  std::vector<Listing> listings;            ///< listings by node; a node lists a tensor once

  std::span<const Listing> of(NodeId node) const {
    if (first.empty()) return {};
    return std::span(listings).subspan(first[node.index()], first[node.index() + 1] - first[node.index()]);
  }
  /// Returns for each tensor whether a node makes it without needing it; a tensor without such a maker is there before
  /// the first node. [num_tensors], O(listings).
  std::vector<bool> has_maker() const;
  /// Returns the bytes of memory that the vectors hold.
  std::size_t bytes() const;

  friend bool operator==(const Tensors&, const Tensors&) = default;
};

/// The structure of a trace: immutable, without cycles, shared by all NPUs whose traces differ only in peers, groups,
/// tags, ids and names. Nodes are numbered in ascending order of the trace's ids.
struct Graph {
  std::vector<Node> nodes;                ///< [num_nodes + 1]; the last is a sentinel that ends the successors
  std::vector<std::uint32_t> successors;  ///< NodeId values, each dependency once
  std::vector<Time> durations;            ///< [num_nodes] recorded durations; empty if all are zero
  std::vector<std::int32_t> priorities;   ///< [num_nodes] comm_priority; empty if all are zero
  std::vector<std::uint32_t> customs;     ///< [num_nodes] by ReadOptions::custom_nodes; empty if all are zero
  Tensors tensors;
  std::vector<std::uint32_t> milestones;  ///< NodeId values, in the order in which they end, whose ends NPUs note
  std::uint32_t num_group_slots = 0;
  std::uint32_t num_peer_slots = 0;
  std::uint32_t num_tag_slots = 0;
  std::uint32_t num_streams = 0;

  std::uint32_t num_nodes() const { return static_cast<std::uint32_t>(nodes.size() - 1); }
  std::span<const std::uint32_t> successors_of(NodeId node) const {
    const auto first = nodes[node.index()].first_successor;
    return std::span(successors).subspan(first, nodes[node.index() + 1].first_successor - first);
  }
  Time duration_of(NodeId node) const { return durations.empty() ? Time::zero() : durations[node.index()]; }
  std::int32_t priority_of(NodeId node) const { return priorities.empty() ? 0 : priorities[node.index()]; }
  std::uint32_t custom_of(NodeId node) const { return customs.empty() ? 0 : customs[node.index()]; }
  /// Returns NodeId values in an order in which dependencies come first. O(nodes + dependencies).
  std::vector<std::uint32_t> topological_order() const;
  /// Returns the bytes of memory that the graph holds.
  std::size_t bytes() const;
};

/// Ids and names of the nodes, for messages and timelines. NPUs share them if they are equal up to a shift of the ids.
struct Labels {
  std::vector<std::uint64_t> ids;      ///< [num_nodes] id less the first id
  std::vector<std::uint32_t> names;    ///< [num_nodes] index into the Store's names
  std::vector<std::uint32_t> tensors;  ///< [num_tensors] index into the Store's names
};

/// The end of a communication node of a recording, counted from the start of the recording.
struct RecordedEnd {
  NodeId node;
  std::int64_t ns = 0;
};

/// When a recording was made, by its clock.
struct RecordedTime {
  std::int64_t start_ns = 0;
  std::int64_t length_ns = 0;
  std::optional<std::uint32_t> step;  ///< number of the step, if it is one
  std::vector<RecordedEnd> ends;      ///< ends of collectives and messages, by node
};

/// The trace of one NPU.
struct NpuTrace {
  std::shared_ptr<const Graph> graph;
  std::shared_ptr<const Labels> labels;
  std::uint64_t first_id = 0;
  std::vector<GroupId> groups;                   ///< [num_group_slots]
  std::vector<NpuId> peers;                      ///< [num_peer_slots]
  std::vector<std::uint64_t> tags;               ///< [num_tag_slots]
  std::uint32_t file = 0;                        ///< index into the Store's files
  std::shared_ptr<const RecordedTime> recorded;  ///< recorded times, for a recording

  std::uint64_t id_of(NodeId node) const { return first_id + labels->ids[node.index()]; }
};

/// A process group. Without members it is all NPUs.
struct Group {
  std::string name;
  std::vector<NpuId> members;

  friend bool operator==(const Group&, const Group&) = default;
  friend auto operator<=>(const Group&, const Group&) = default;
};

/// Returns how messages call a group: "group 'x'", or "all NPUs" for a group without a name.
std::string describe(const Group& group);

}  // namespace orrery::trace
