#pragma once

#include <span>
#include <vector>

#include "layer.hpp"
#include "orrery/trace/builder.hpp"

namespace orrery::workload {

/// The layers of each virtual stage: as even as can be, what is left over goes to the middle, so that the first and the
/// last, which hold the embedding and the output layer too, have fewer.
std::vector<std::span<const Layer>> deal(std::span<const Layer> layers, std::uint32_t num_virtual_stages);

/// The layers of a stage, in the order of a forward pass. `dealt` is what `deal` gives.
std::vector<const Layer*> layers_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> dealt,
                                          std::uint32_t stage);

/// One training step of the NPUs of a stage: groups are numbered by GroupKind, peers by stage. `late`: the time at
/// which they start. Throws Error (bad_input) if the tensors of an NPU exceed Bytes::most() in all. Cost O(nodes).
trace::Structure step_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> dealt,
                               std::uint32_t stage, Time late = Time::zero());

}  // namespace orrery::workload
