#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lattice.hpp"
#include "orrery/synthesis/model.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::synthesis {

/// What an NPU's tables of groups and peers are, seen from the NPU: numbers of distinct shapes and offsets.
struct NpuView {
  std::vector<std::uint32_t> shapes;   ///< [num_group_slots]
  std::vector<std::uint32_t> offsets;  ///< [num_peer_slots]
};

/// All NPUs on the axes.
struct Views {
  std::vector<Axis> axes;
  std::vector<GroupShape> shapes;
  std::vector<Offsets> offsets;
  std::vector<NpuView> npus;
};

/// Finds axes and sees each NPU's groups and peers from there. O(NPUs * (groups + peers) + members).
Views view(const trace::Store& store, std::span<const trace::NpuTrace> traces);

/// Returns the role of each NPU, numbered in the order of their first NPUs: NPUs of one role have one structure, equal
/// groups and peers seen from each, and their groups and peers are of the same roles (colour refinement, as
/// docs/folding.md has it).
std::vector<std::uint32_t> find_roles(std::span<const trace::NpuTrace> traces, const Views& views);

}  // namespace orrery::synthesis
