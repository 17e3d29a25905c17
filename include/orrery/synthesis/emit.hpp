#pragma once

#include <cstdint>
#include <vector>

#include "orrery/synthesis/model.hpp"
#include "orrery/synthesis/scale.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::synthesis {

struct EmitReport {
  std::uint32_t num_npus = 0;
  std::uint64_t num_nodes = 0;  ///< number of nodes of all NPUs
  std::uint32_t micro_batches = 1, layers = 0;
  std::uint64_t dropped_edges = 0;  ///< edges of the programs whose sources do not exist at this scale
  std::uint64_t sizes = 0;          ///< positive sizes of the programs
};

struct Emission {
  std::vector<trace::NpuTrace> traces = {};  ///< [npus] of the store
  EmitReport report;
};

/// Makes the traces of a model at another scale in a store of that many NPUs (`num_npus_of`). The same seed gives the
/// same traces. Throws Error (bad_input) if the model cannot be scaled so. O(nodes of roles + NPUs * groups * members).
Emission emit(const Model& model, const Scale& scale, const Obfuscation& obfuscation, trace::Store& store);

/// Returns the number of NPUs at a scale. Throws as `emit` does.
std::uint32_t num_npus_of(const Model& model, const Scale& scale);

}  // namespace orrery::synthesis
