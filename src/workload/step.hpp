#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "layer.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/workload/outline.hpp"
#include "schedule.hpp"

namespace orrery::workload {

/// Assigns layers to virtual stages, as Parallel::stage_layers says or as evenly as possible. What is left over goes to
/// the middle stages, so that the first and the last, which also hold the embedding and the output layer, have fewer.
/// [num_virtual_stages]
std::vector<std::span<const Layer>> assign_layers(std::span<const Layer> layers, const Parallel& parallel);

/// Returns the layers of a stage, in the order of a forward pass. `assigned` is what `assign_layers` returns.
std::vector<const Layer*> layers_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                                          std::uint32_t stage);

/// Makes one training step of the NPUs of a stage. Groups are numbered by GroupKind, peers by stage. `start` is the
/// time at which they start. Throws Error (bad_input) if the tensors of an NPU exceed Bytes::most() in all. Cost
/// O(nodes).
trace::Structure step_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                               std::uint32_t stage, Time start = Time::zero());

/// Returns a pass as outlines have it, without its nodes.
OutlinePass outline_of(const Pass& pass);
/// Makes the step of one micro-batch, with these passes, which `parallel` has. Leaves the groups to the caller. Cost
/// O(nodes).
StageOutline outline_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                              std::uint32_t stage, std::span<const Pass> passes);

/// Returns the layers of the whole model in the step of a request that makes a token.
using LayersOfToken = std::function<std::vector<Layer>(std::uint64_t token)>;

/// Makes a request of the NPUs of a stage: its prefill and the decoding of each further token, one after the other. It
/// notes when the last stage has each token. Throws and costs as `step_of_stage`.
trace::Structure request_of_stage(const Description& request, std::uint32_t stage, Time start,
                                  const LayersOfToken& layers_of);

}  // namespace orrery::workload
