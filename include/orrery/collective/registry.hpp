#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/collective/options.hpp"

namespace orrery::collective {

class SteppedAlgorithm;
struct GroupTask;

/// A set of kinds of collectives.
class Kinds {
 public:
  constexpr Kinds(std::initializer_list<Kind> kinds) {
    for (const Kind kind : kinds) bits_ |= 1U << static_cast<unsigned>(kind);
  }
  constexpr bool contains(Kind kind) const { return (bits_ >> static_cast<unsigned>(kind) & 1U) != 0; }

 private:
  std::uint32_t bits_ = 0;
};

/// A collective algorithm that configurations can name. src/collective/registry.cpp has the table.
struct AlgorithmEntry {
  std::string_view name;     ///< as configurations spell it
  std::string_view summary;  ///< one line of help
  /// What it carries out in a dimension group. Broadcast and reduce only if it has steps of its own for them; any
  /// algorithm carries these two out as an all-reduce.
  Kinds kinds;
  std::unique_ptr<const SteppedAlgorithm> (*make)(const GroupTask& task) = nullptr;
  std::string_view whole_name = {};     ///< name of the form in which all members are one dimension group; empty: none
  bool powers_of_two_only = false;      ///< it needs 2, 4, 8, ... positions
  bool takes_window = false;            ///< a number after the name limits the messages that a position sends at a time
  bool is_in_switch = false;            ///< the switch of the dimension carries it out
  bool differs_for_odd_chunks = false;  ///< even and odd chunks take different steps
  bool goes_round = false;              ///< positions have a next one, so that there are two ways round
  bool stays_in_subgroups = false;      ///< see Rules::subgroup_is_ring
};

/// Returns all algorithms, in the order of the registry.
std::span<const AlgorithmEntry> algorithms();
/// Returns the entry of an algorithm. Throws Error (internal) if the registry has no such name.
const AlgorithmEntry& entry_of(const Algorithm& algorithm);
/// Returns the algorithm that a configuration names, such as "ring", "direct2" or "oneRing"; nothing if there is none.
std::optional<Algorithm> find_algorithm(std::string_view name);
/// Returns all names that find_algorithm knows, without windows.
std::vector<std::string_view> algorithm_names();
/// Returns which kinds and sizes an algorithm serves, such as "all-reduce, broadcast; powers of two".
std::string scope(const AlgorithmEntry& entry);

}  // namespace orrery::collective
