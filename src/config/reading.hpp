#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/faults.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/config/read.hpp"

namespace orrery::config {

struct KeyInfo;

/// What the reader of a value may look at, besides the value: the configuration as far as it has been read.
struct Reading {
  Configuration& configuration;
  Faults& faults;
  bool system_only = false;                   ///< the command needs no workload
  const AstraSimInputs* astra_sim = nullptr;  ///< null unless ASTRA-sim's files are read
  /// [entries of system.network.dimensions] the number of dimensions that each entry stands for: 2 for a Torus2D.
  std::vector<std::uint32_t> dimensions_of_entry = {};
  /// ASTRA-sim's keys in the file at hand that have no effect and are to be named in a warning.
  std::vector<std::string> without_effect = {};

  /// Returns the number of NPUs; 0 if it is not known or more than a topology can have.
  std::uint32_t num_npus() const;
  /// Notes where a key is given, for messages about its value. Items of lists are left out.
  void note_place(const KeyInfo& key, const Place& place);
};

/// Returns the product of the sizes; 0 if there are no dimensions, a size is 0 (not known), or it is above 2^32 - 1.
std::uint32_t count_npus(const std::vector<topology::Dimension>& dimensions);
/// A topology of more NPUs is refused.
inline constexpr std::uint32_t most_npus = 1U << 24U;

}  // namespace orrery::config
