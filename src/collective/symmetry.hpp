#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan.hpp"

namespace orrery::collective {

/// [members] Members of one mark and one place complete together if all members of one mark arrive together. `axes`
/// number the members without a gap: those of the grid, or the line. `phases`: of all collectives that are asked about,
/// in these axes only. O(members * divisors of the axes' sizes).
std::vector<std::uint32_t> equivalence_classes(std::span<const Axis* const> axes, const std::vector<Phase>& phases,
                                               std::span<const std::uint32_t> marks);

}  // namespace orrery::collective
