#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "routes.hpp"

namespace orrery::collective {

/// Returns the class of each member: members with equal signatures and equal classes complete together if all members
/// with equal signatures arrive together. `axes` give every member a different cell: they are those of the grid, or the
/// group of all members. `phases`: of all collectives that are asked about, in these axes only. O(members * divisors of
/// the axes' sizes), and what PhaseAlgorithm::symmetry costs.
std::vector<std::uint32_t> equivalence_classes(std::span<const Axis* const> axes, const std::vector<Phase>& phases,
                                               const Rules& rules, std::span<const std::uint32_t> signatures);

}  // namespace orrery::collective
