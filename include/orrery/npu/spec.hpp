#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/npu/program.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::npu {

// In a folded run one NPU represents all that behave alike (docs/folding.md). What it does with others then goes by the
// tables below. Without them every NPU represents itself.

/// All sends, or all receives, of a structure that have one peer slot and one tag slot.
struct MessageStream {
  trace::NodeKind kind = trace::NodeKind::send;  ///< or receive
  std::uint32_t peer_slot = 0;
  std::uint32_t tag_slot = 0;

  friend bool operator==(const MessageStream&, const MessageStream&) = default;
};

/// The message streams of a structure.
struct MessageStreams {
  std::vector<MessageStream> all;      ///< streams in the order of their first nodes
  std::vector<std::uint32_t> of_node;  ///< [num_nodes] index into all, of sends and receives; empty if there are none
};

/// Returns the message streams of a graph. O(nodes + sends and receives * log streams).
MessageStreams message_streams_of(const trace::Graph& graph);

/// The other end of the messages of a node: the NPU there, or the one that represents it, and how it tells them apart.
struct StreamEnd {
  NpuId npu;
  std::uint32_t stream = 0;  ///< the tag; in a folded run index into the MessageStreams of that NPU
};

/// An NPU that represents others.
struct FoldedNpu {
  std::uint64_t count = 1;  ///< NPUs that it represents, itself included
  /// [program uses] its index into Representatives::npus of the communicator; empty in a replay.
  std::vector<std::uint32_t> participants;
  const MessageStreams* streams = nullptr;  ///< streams of its structure
  std::vector<StreamEnd> ends;              ///< [streams]
};

/// One NPU of this rank.
struct NpuSpec {
  NpuId id;
  const trace::NpuTrace* trace = nullptr;
  const Program* program = nullptr;
  std::vector<GroupId> groups;        ///< [program uses] the communicators of its collectives
  const FoldedNpu* folded = nullptr;  ///< folding of the NPU in a folded run; null: it represents itself

  LpId lp() const { return LpId(id.value()); }
  /// Returns the number of NPUs that it represents.
  std::uint64_t count() const { return folded ? folded->count : 1; }
};

}  // namespace orrery::npu
