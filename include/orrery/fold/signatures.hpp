#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "orrery/fold/signature_graph.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/npu/spec.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::fold {

/// How many signatures NPUs have by themselves, by cause.
struct SignatureCounts {
  std::uint64_t structures = 0;  ///< distinct programs
  std::uint64_t noisy = 0;       ///< NPUs whose compute times are drawn for each of them
  std::uint64_t sharing = 0;     ///< NPUs that share a memory server, first come, first served
  std::uint64_t by_speeds = 0;   ///< signatures that compute speeds add to these
  std::uint64_t by_routes = 0;   ///< signatures that routes of messages add to all these
};

/// The streams of each structure.
using StreamsOf = std::map<const npu::Program*, npu::MessageStreams>;

/// Adds the streams of the structures of these NPUs that are not there. O(nodes) for each structure.
void add_streams_of_programs(std::span<const npu::NpuSpec> npus, StreamsOf& streams);

struct Signatures {
  SignatureGraph graph;
  SignatureCounts counts;
  std::vector<std::uint32_t> structure_of_signature;  ///< [signatures] what NPUs of a signature execute
  std::vector<std::uint32_t> num_nodes;               ///< [structures]

  /// Returns the number of nodes of the trace of an NPU of any rank.
  std::uint32_t num_nodes_of(std::uint32_t npu) const {
    return num_nodes[structure_of_signature[graph.signature_of_npu[npu]]];
  }
};

/// Returns the properties that separate the NPUs of a run. `context.npus` are the NPUs that `context.hosting` gives
/// this rank, and rank r has lower ones than rank r + 1; the run is not folded. Each rank has the uses and streams of
/// its own NPUs, and the members of a block of the groups; of all others it has the signature and the layout. In a
/// replay NPUs do not communicate. `context` outlives the graph's positions_among. Collective. O(streams log streams of
/// an NPU) for each NPU of this rank, O(members), and one computation of each distinct layout, kind and size of
/// collectives.
Signatures signatures_of(const npu::RunContext& context, const StreamsOf& streams, parallel::Communicator& world);

}  // namespace orrery::fold
