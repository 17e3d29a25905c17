#pragma once

#include <cstdint>
#include <vector>

#include "orrery/npu/run_context.hpp"

namespace orrery::model {

/// Returns [num_npus] the cells of pdes::Options: an NPU of this rank is in one cell with the small group with which it
/// has most collectives, or else with the NPUs next to it that have no such group. O(nodes of the distinct programs +
/// NPUs * uses of groups).
std::vector<std::uint32_t> cells_of(const npu::RunContext& run);

/// Returns [num_npus] the cells of NPUs and their links, where links are simulated: of sets of this rank's NPUs that
/// send each other most messages, each with as few NPUs as fit a core's cache. Empty if all are in one cell, because
/// most collectives would leave smaller ones, or because clients also call servers that are no links. O(nodes of the
/// distinct programs + (members of groups + peers) * log).
std::vector<std::uint32_t> cells_of_links(const npu::RunContext& run);

/// Returns [LPs] the cells of pdes::Options that follow from npu::RunContext::cell_of; empty if that is. O(LPs).
std::vector<std::uint32_t> cells_of_lps(const npu::RunContext& run);

}  // namespace orrery::model
