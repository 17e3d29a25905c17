#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "orrery/workload/parallel.hpp"

namespace orrery::workload {

/// A pass of one micro-batch through one virtual stage.
struct Pass {
  enum class Kind : std::uint8_t {
    forward,
    backward,  ///< makes the gradients of inputs and of weights
    inputs,    ///< the part of a backward pass that makes the gradients of inputs, for which the stage before waits
    weights,   ///< the part that makes the gradients of weights, for which no stage waits
  };
  Kind kind = Kind::forward;
  std::uint32_t micro_batch = 0;
  std::uint32_t chunk = 0;    ///< which of the NPU's virtual stages (Parallel::virtual_stage)
  bool is_with_next = false;  ///< this pass and the next one are a pair: their messages are exchanged together

  bool is_forward() const { return kind == Kind::forward; }
  bool makes_weight_gradients() const { return kind == Kind::backward || kind == Kind::weights; }
  /// Returns "forward", "backward" or "weights"; the gradients of inputs are called a backward pass.
  std::string_view name() const { return is_forward() ? "forward" : kind == Kind::weights ? "weights" : "backward"; }

  friend bool operator==(const Pass&, const Pass&) = default;
};

/// Returns the passes of a stage in order. O(passes); for ZB-V O(passes of all stages).
std::vector<Pass> passes_of(const Parallel& parallel, std::uint32_t stage);

/// Returns the same with fewer micro-batches where passes repeat themselves: each stage begins with the same passes,
/// the first micro-batch has its passes in the same order, the last pass is of the same kind and chunk, and as many
/// passes of each chunk are begun and not ended at a time. The number does not grow with that of the micro-batches, but
/// with GPipe, ZB-V and DualPipe.
Parallel with_fewer_micro_batches(const Parallel& parallel);

/// Returns the largest number of passes of a stage that are begun and not ended at a time, if a formula gives it: with
/// GPipe and 1F1B.
std::optional<std::uint32_t> most_kept(const Parallel& parallel, std::uint32_t stage);

/// Throws Error (bad_input), which names the key of CONFIG.yaml, if the schedule cannot have these stages,
/// micro-batches and virtual stages.
void require_possible_schedule(const Parallel& parallel);

}  // namespace orrery::workload
