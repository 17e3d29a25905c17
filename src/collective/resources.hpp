#pragma once

#include <cstdint>
#include <span>

#include "group_layout.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/library.hpp"
#include "orrery/collective/options.hpp"
#include "orrery/topology/topology.hpp"

namespace orrery::collective {

/// Returns how a library, or kernels of experts without one, see the members of a layout: the rates that the described
/// network gives a member. `sharers` has the collectives that share each dimension (empty: one each), and `bandwidths`
/// what the links of the first dimensions have in place of what is described. `directions` are those that it uses in
/// Rings and Meshes. O(dimensions), for members that fill no grid O(members * dimensions).
LibraryGroup library_group(const topology::Topology& topology, const LibraryOptions& options, const GroupLayout& layout,
                           std::span<const std::uint32_t> sharers, Directions directions,
                           std::span<const Bandwidth> bandwidths = {});

/// Returns how many collectives of such a communicator share each dimension; nothing: one each.
inline std::span<const std::uint32_t> sharers_of(const Options& options, const GroupLayout& layout) {
  if (options.sharing.sharers.empty() || !options.rules.share_bandwidth) return {};
  return options.sharing.sharers[layout.sharing];
}

}  // namespace orrery::collective
