#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "expansion.hpp"
#include "orrery/trace/builder.hpp"

namespace orrery::synthesis {

/// The structure of a role, and what its slots stand for.
struct RoleStructure {
  trace::Structure structure;
  std::vector<GroupShape> groups;  ///< [num_group_slots]
  std::vector<Offsets> peers;      ///< [num_peer_slots]
};

/// Returns the bytes with which a tensor is written.
using TensorSizes = std::function<std::uint64_t(const HeldTensor&)>;

/// Makes the structure of a role. Neighbours that neither depend on each other nor compete for a resource change places
/// as `seed` says; nodes are named "op0", "op1", ... in their new order. `sizes`: [nodes]. O(nodes + dependencies).
RoleStructure make_structure(const Model& model, const ScaledProgram& program, std::span<const Sizes> sizes,
                             const TensorSizes& tensor_size, std::uint64_t seed);

}  // namespace orrery::synthesis
