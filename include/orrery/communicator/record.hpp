#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::communicator {

/// One collective of a communicator.
struct CollectiveRecord {
  GroupId group;
  std::uint32_t ordinal = 0;  ///< which of the communicator's collectives, from 0
  std::uint8_t kind = 0;      ///< collective::Kind
  std::uint32_t members = 0;
  Bytes size;
  Time first_arrival, last_arrival, finish;
};

/// Sums over all collectives of one kind and number of members, whether they are recorded or not.
struct CollectiveSum {
  std::uint8_t kind = 0;  ///< collective::Kind
  std::uint32_t members = 0;
  std::uint64_t count = 0;
  unsigned __int128 bytes = 0;  ///< sum of CollectiveRecord::size
  SumOfTimes time = 0;          ///< from the last arrival to the finish
};

/// A collective of a folded run in which members with one representative do not complete together. What follows from
/// it in that run is wrong.
struct Divergence {
  GroupId group;
  Time last_arrival;
  Time first_completion;
  std::vector<std::uint32_t> labels;  ///< [members] members of equal labels complete together

  void serialize(Archive& archive) { archive(group, last_arrival, first_completion, labels); }
};

}  // namespace orrery::communicator
