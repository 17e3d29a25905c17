#pragma once

#include <span>
#include <vector>

#include "layer.hpp"
#include "orrery/trace/builder.hpp"

namespace orrery::workload {

/// The layers of each virtual stage: as even as can be, what is left over goes to the middle, so that the first and the
/// last, which hold the embedding and the output layer too, have fewer.
std::vector<std::span<const Layer>> deal(std::span<const Layer> layers, std::uint32_t num_virtual_stages);

/// One training step of the NPUs of a stage: groups are numbered by GroupKind, peers by stage. `dealt` is what `deal`
/// gives. `late`: the time at which they start. Cost O(nodes).
trace::Structure step_of_stage(const Parallel& parallel, std::span<const std::span<const Layer>> dealt,
                               std::uint32_t stage, Time late = Time::zero());

}  // namespace orrery::workload
