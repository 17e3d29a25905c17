#pragma once

#include <cstdint>

#include "orrery/gpu/program.hpp"

namespace orrery::gpu {

/// The operands of an operation. Those from the last named one on are alike.
struct OperandRules {
  Access first_source, more_sources;
  std::uint32_t least_sources, most_sources;
  Access first_destination, second_destination, more_destinations;
  std::uint32_t least_destinations, most_destinations;
  bool is_paired;  ///< source i goes to destination i; a lone source goes to all

  Access source(std::uint32_t i) const { return i == 0 ? first_source : more_sources; }
  Access destination(std::uint32_t i) const {
    return i == 0 ? first_destination : i == 1 ? second_destination : more_destinations;
  }
};

/// Returns the rules of operations of a kind.
OperandRules operand_rules(OperationKind kind, Transport transport);

/// Says whether operations of a kind add up their sources.
bool is_reduction(OperationKind kind);
/// Says whether operations of a kind send words, or wait for them.
bool sends_words(OperationKind kind);
bool awaits_words(OperationKind kind);
/// Says whether operations of a kind name channels in their ids, and whether they name semaphores.
bool uses_channels(OperationKind kind, Transport transport);
bool uses_semaphores(OperationKind kind);

}  // namespace orrery::gpu
