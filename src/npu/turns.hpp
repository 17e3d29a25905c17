#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/trace/graph.hpp"
#include "yielding.hpp"

namespace orrery::npu {

struct DimensionStreams;

/// The resources that nodes need under DimensionStreams, found once for all NPUs of a program whose groups take turns
/// in the same streams.
class ResourceTables {
 public:
  using Table = std::vector<std::uint16_t>;  ///< [num_nodes] ResourceMap::of

  /// Returns the table of an NPU; null if nodes do not take turns so. O(uses), and O(nodes) for each distinct table.
  const Table* of(const NpuSpec& npu, const DimensionStreams& streams);

 private:
  using Streams = std::vector<std::uint16_t>;  // [uses]

  std::map<std::pair<const Program*, Streams>, Table> made_;
};

/// Which communication nodes take turns under Options::dimension_streams: collectives that use the same dimensions,
/// or dimensions that contend for a port, also if others connect these dimensions, with those of their tier
/// (yielding.hpp); and sends. Streams are numbered from 1: those of the sets of dimensions in tier 0, then in the other
/// tiers, then that of sends.
struct DimensionStreams {
  std::vector<std::uint16_t> of_group;  ///< [communicators]
  std::uint16_t num_sets = 0;
  std::uint16_t sends = 0;  ///< the last stream; 0: nodes do not take turns so
  /// By program of this rank: [uses] a mask, bit t for collectives of tier t. Programs without priorities have none.
  std::map<const Program*, std::vector<std::uint8_t>> tiers;
  ResourceTables tables = {};  ///< those that have been made
};

/// Returns a mask: bit d is set if members of the communicator differ in dimension d. O(members * dimensions).
std::uint64_t dimensions_of(const communicator::CommunicatorSpec& spec, const topology::Topology& topology);

/// Returns the streams of a run. O(members of communicators * dimensions).
DimensionStreams dimension_streams_of(const RunContext& run);

/// The resources of an NPU by number, and the one that each node needs.
class ResourceMap {
 public:
  /// After these come streams, one resource each: those of the trace, then DimensionStreams.
  enum Index : std::uint16_t { cpu = 0, compute = 1, communication = 2, unlimited = 3 };
  static constexpr std::uint16_t num_fixed = 4;

  /// All outlive this. `table`: of ResourceTables; null: none.
  ResourceMap(const NpuSpec& npu, const DimensionStreams& streams, const ResourceTables::Table* table)
      : npu_(npu), streams_(streams), table_(table) {}

  std::size_t count() const { return first_dimension_stream() + streams_.sends; }
  std::uint16_t of(NodeId id) const {
    if (table_ != nullptr) return (*table_)[id.index()];
    const trace::Node& node = graph().nodes[id.index()];
    if (node.stream > 0) return static_cast<std::uint16_t>(num_fixed + node.stream - 1);
    switch (node.kind) {
      case trace::NodeKind::cpu:
      case trace::NodeKind::host:
        return cpu;
      case trace::NodeKind::compute:
        return compute;
      case trace::NodeKind::instant:
      case trace::NodeKind::receive:
        return unlimited;
      default:
        return streams_.sends == 0 || node.is_access() ? std::uint16_t{communication} : turn_of(id, node);
    }
  }

 private:
  /// Returns the stream in which a collective or a send takes its turn.
  std::uint16_t turn_of(NodeId id, const trace::Node& node) const;
  const trace::Graph& graph() const { return *npu_.program->graph; }
  std::size_t first_dimension_stream() const { return num_fixed + graph().num_streams; }

  const NpuSpec& npu_;
  const DimensionStreams& streams_;
  const ResourceTables::Table* table_;
};

}  // namespace orrery::npu
