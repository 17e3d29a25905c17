#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/compute/model.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// A pass of the first micro-batch through a virtual stage.
struct OutlinePass {
  enum class Kind : std::uint8_t { forward, backward, weights };
  Kind kind = Kind::forward;
  std::uint32_t chunk = 0;         ///< which of the stage's virtual stages (Parallel::virtual_stage)
  std::vector<NodeId> chain = {};  ///< its nodes, each of which waits for the one before it
};

/// What the collectives of a group slot are for.
struct OutlineGroup {
  enum class Role : std::uint8_t {
    passes,  ///< collectives of layers: the chain of passes waits for them
    copies,  ///< among copies of states: one chain
    sums,    ///< sums of gradients apart from these: a chain of its own
    other,   ///< collectives of other stages too, or of another chain
  };
  Role role = Role::other;
  std::vector<NpuId> members;  ///< members of such a group of NPU 0, in its stage; ascending
};

/// The nodes of the NPUs of a stage in a step of one micro-batch. All NPUs of the stage have the same ones, and so have
/// those of other stages inside the pipeline with the same layers; only the stages that messages name differ.
struct StageOutline {
  trace::Structure structure;
  std::vector<OutlineGroup> groups;  ///< [num_group_slots]
  std::vector<NodeId> before;        ///< the chain before the passes
  std::vector<OutlinePass> passes;   ///< passes in the order of the whole step
  std::uint32_t end_of_passes = 0;   ///< nodes from this one on are those of the update
};

/// A stage of an outline.
struct OutlineStage {
  std::uint32_t outline = 0;  ///< its number in Outline::outlines
  NpuId first_npu;
  OutlinePass first, last;  ///< first and last pass of the whole step, without their nodes
};

/// A training step in short: one micro-batch of each stage, from which bounds of the whole step follow.
struct Outline {
  std::vector<StageOutline> outlines;   ///< outlines of the distinct stages
  std::vector<OutlineStage> stages;     ///< [pp]
  std::vector<std::uint32_t> stage_of;  ///< [num_virtual_stages]
  std::vector<std::uint64_t> handed;    ///< [num_virtual_stages - 1] bytes that each hands to the next one, and back
};

/// Says whether bounds can be found for such a step: training of a transformer whose NPUs differ by their stage only.
bool has_outline(const Description& description);
/// Returns an NPU of each stage; with an outline, all NPUs of a stage have the same nodes. [pp]
std::vector<NpuId> npus_of_stages(const Parallel& parallel);
/// Returns the outline. Compute nodes have the durations that `estimates` gives, if there is one. Throws Error
/// (bad_input) as Description::validate does. O(layers + nodes of a micro-batch in the outlines + passes of all stages
/// + members of groups).
Outline outline(const Description& description, const compute::ComputeModel* estimates);

/// Says whether all groups of one kind in a stage have as many members in each dimension of a system, at the same
/// distances: the products of the sizes of axes and of dimensions, from the innermost on, each divide the next larger
/// one.
bool groups_are_alike(const Parallel& parallel, std::span<const std::uint32_t> dimension_sizes);

/// Returns a lower bound of the largest use of local memory: the data that the NPU of the most demanding stage keeps
/// throughout, and the activations of the micro-batches that its schedule has begun and not ended at a time. For steps
/// that have an outline. O(layers + passes of all stages).
std::uint64_t least_peak_memory(const Description& description);

}  // namespace orrery::workload
