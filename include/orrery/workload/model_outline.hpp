#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "orrery/compute/model.hpp"
#include "orrery/workload/outline.hpp"

namespace orrery::workload {

/// Consecutive layers that differ in their names only.
struct LayerRun {
  std::uint32_t kind = 0;  ///< its number in a ModelOutline
  std::uint32_t count = 0;

  friend bool operator==(const LayerRun&, const LayerRun&) = default;
};
using LayerRuns = std::vector<LayerRun>;

/// The layers of a model as NPUs execute them. Steps that differ only in dp, pp, schedule, sharding of states and
/// number of micro-batches have the same one, so that bounds of many of them need its layers once.
class ModelOutline {
 public:
  /// For steps that have an outline (has_outline). Throws Error (bad_input) as `outline` does. O(layers).
  ModelOutline(const Description& description, const compute::ComputeModel* estimates);
  ~ModelOutline();

  /// Says whether a step has these layers. Its compute model must be that of the constructor. O(1).
  bool is_of(const Description& description) const;
  /// Returns a number that is the same for steps that have the same layers.
  static std::size_t hash(const Description& description);

  /// Returns the layers of each virtual stage: [num_virtual_stages]. For a step that has these layers. O(runs of alike
  /// layers + virtual stages).
  std::vector<LayerRuns> virtual_stages(const Parallel& parallel) const;
  /// Returns the passes of a micro-batch through such layers alone: a forward one, then a backward one, or one for
  /// gradients of inputs and one for those of weights. O(nodes).
  StageOutline passes_through(std::span<const LayerRun> runs, bool is_divided) const;
  /// Returns the result of least_peak_memory for a step with these layers. O(layers + passes of all stages).
  std::uint64_t least_peak_memory(const Parallel& parallel) const;

 private:
  struct Layers;
  std::unique_ptr<const Layers> layers_;
};

/// Says whether each backward pass is divided in two.
bool divides_backward_passes(const Parallel& parallel);

}  // namespace orrery::workload
