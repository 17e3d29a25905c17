#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/npu/program.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::npu {

// In a folded run one NPU stands for all that are alike (docs/folding.md). What it has to do with others then goes
// through the tables below; without them every NPU stands for itself.

/// The messages of a structure by where they go or come from: all sends, or all receives, of one peer slot and one tag
/// slot are a stream.
struct Streams {
  struct Stream {
    trace::NodeKind kind = trace::NodeKind::send;  ///< or receive
    std::uint32_t peer_slot = 0;
    std::uint32_t tag_slot = 0;

    friend bool operator==(const Stream&, const Stream&) = default;
  };
  std::vector<Stream> all;             ///< in the order of their first nodes
  std::vector<std::uint32_t> of_node;  ///< [num_nodes] index into all, of sends and receives; empty if there are none
};

/// O(nodes + sends and receives * log streams).
Streams streams_of(const trace::Graph& graph);

/// The other end of a stream: the NPU that stands for the peer, and which of its streams this one is there.
struct Route {
  NpuId npu;
  std::uint32_t stream = 0;
};

/// Of an NPU that stands for others.
struct FoldedNpu {
  std::uint64_t count = 1;  ///< NPUs that it stands for, itself included
  /// [program uses] its index into Representatives::npus of the communicator; empty in a replay.
  std::vector<std::uint32_t> participants;
  const Streams* streams = nullptr;  ///< of its structure
  std::vector<Route> routes;         ///< [streams]
};

/// One NPU of this rank.
struct NpuSpec {
  NpuId id;
  const trace::NpuTrace* trace = nullptr;
  const Program* program = nullptr;
  std::vector<GroupId> groups;        ///< [program uses] the communicators of its collectives
  const FoldedNpu* folded = nullptr;  ///< of a folded run; else it stands for itself
  std::uint64_t count() const { return folded ? folded->count : 1; }
};

}  // namespace orrery::npu
