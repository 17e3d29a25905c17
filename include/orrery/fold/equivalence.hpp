#pragma once

#include <cstdint>
#include <vector>

#include "orrery/fold/signature_graph.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::fold {

/// NPUs and groups in equivalence classes.
struct EquivalenceClasses {
  std::vector<std::uint32_t> of_npu;           ///< [npus] numbered in the order of their representatives
  std::vector<std::uint32_t> of_group;         ///< [groups]
  std::vector<std::uint32_t> representatives;  ///< [classes] the lowest NPU of each class
  std::vector<std::uint64_t> sizes;            ///< [classes] NPUs
  // Classes that there are beyond the signatures of NPUs, by what told them apart from the rest of their class.
  std::uint64_t by_members = 0;   ///< a group with members of other classes
  std::uint64_t by_position = 0;  ///< a position in a group whose members are not all equivalent
  std::uint64_t by_messages = 0;  ///< streams to or from NPUs of other classes

  std::uint32_t count() const { return static_cast<std::uint32_t>(representatives.size()); }
};

/// Computes the coarsest equitable partition of the graph. NPUs of one class have groups of one class, use by use, and
/// streams to and from the same classes, stream by stream. In a group that is not all of one class, or whose members do
/// not complete together, they also have the same position as far as it matters. Groups of one class have the same
/// layout and members of the same classes in the same order.
///
/// This is colour refinement. It inspects again only items connected to a change, and the largest part of a class
/// that falls apart keeps its number (Hopcroft's rule). Each rank looks at its own NPUs and groups. Ranks compare the
/// distinct signatures of all of them word by word, and tell each other which items have got another class. The result
/// is the same on all ranks, and on any number of them. Collective. Cost about O((members + streams of this rank) log
/// npus + npus).
EquivalenceClasses refine(const SignatureGraph& graph, parallel::Communicator& world);
/// Does the same for a graph that is all on one rank.
EquivalenceClasses refine(const SignatureGraph& graph);

}  // namespace orrery::fold
