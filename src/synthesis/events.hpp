#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "expansion.hpp"
#include "scaled.hpp"

namespace orrery::synthesis {

/// Which nodes of all roles are one event: the same collective of a group, or the two ends of a message. They have one
/// size.
struct Events {
  std::vector<std::uint32_t> first_node;  ///< [roles + 1] number of the first node of each role among those of all
  std::vector<std::uint32_t> of_node;     ///< [nodes of all roles] the lowest node of the same event
  /// [nodes of all roles] dependencies fix the order of all that its groups or channels execute. Else members may meet
  /// in another order than that of the programs, so that nodes that are alike have to have one size.
  std::vector<char> is_ordered = {};
};

/// Matches the collectives and messages of all roles. Throws Error (bad_input) if the members of a group, or the two
/// ends of a channel, execute different numbers of them: then the traces would be stuck. O(nodes * roles in a group).
Events match_events(const Model& model, const ScaledAxes& axes, std::span<const ScaledProgram> programs);

}  // namespace orrery::synthesis
