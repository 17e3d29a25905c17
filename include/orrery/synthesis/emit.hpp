#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_set>
#include <vector>

#include "orrery/synthesis/model.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::synthesis {

/// The output, relative to the learned model.
struct Scale {
  std::map<std::uint32_t, double> axes = {};   ///< factors of axes
  std::optional<std::uint32_t> npus;           ///< the axis of data parallelism is scaled to get so many
  std::optional<std::uint32_t> layers;         ///< layers of a replica
  std::optional<std::uint32_t> micro_batches;  ///< micro-batches of a step
  double sizes = 1;                            ///< factor of FLOPs, bytes and durations
};

struct Obfuscation {
  double delta = 0.05;  ///< deviation of the logarithm of sizes; 0: sizes as learned
  std::uint64_t seed = 1;
  /// Deviation of the logarithm of one factor for all FLOPs, bytes or durations of a size. With it ratios of sizes, and
  /// sums, are others than those that were learned.
  double spread = 0;
  /// What no size may equal as far as another one is near, unless sizes stay as learned; null: nothing.
  const std::unordered_set<std::uint64_t>* avoid = nullptr;

  bool changes_sizes() const { return delta > 0 || spread > 0; }
};

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
