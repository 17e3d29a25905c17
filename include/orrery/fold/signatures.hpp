#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "orrery/fold/signature_graph.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/npu/spec.hpp"

namespace orrery::fold {

/// How many signatures NPUs have by themselves, by cause.
struct SignatureCounts {
  std::uint64_t structures = 0;  ///< distinct programs
  std::uint64_t noisy = 0;       ///< NPUs whose compute times are drawn for each of them
  std::uint64_t sharing = 0;     ///< NPUs that share a memory server, first come, first served
  std::uint64_t by_speeds = 0;   ///< signatures beyond structures and these, by the NPUs' compute speeds
  std::uint64_t by_routes = 0;   ///< signatures beyond all these, by the routes of the NPUs' messages
};

/// The streams of each structure.
using StreamsOf = std::map<const npu::Program*, npu::MessageStreams>;

/// Returns the streams of the structures of these NPUs. O(nodes) for each structure.
StreamsOf streams_of_programs(std::span<const npu::NpuSpec> npus);

struct Signatures {
  SignatureGraph graph;
  SignatureCounts counts;
};

/// Returns what tells the NPUs of a run apart. `context.npus` are all NPUs, in order; the run is not folded. In a
/// replay NPUs do not communicate. `context` outlives the graph's positions_among. O(members + streams log streams of
/// an NPU), and one computation of each distinct layout, kind and size of collectives.
Signatures signatures_of(const npu::RunContext& context, const StreamsOf& streams);

}  // namespace orrery::fold
