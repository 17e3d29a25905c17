#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/time.hpp"

namespace orrery::pdes {

/// Events that the logical processes of one block handled in one bin of simulated time.
struct LoadEvents {
  std::uint32_t block = 0;
  std::uint32_t bin = 0;
  std::uint64_t events = 0;
};

/// Events that one block sent in one bin for another block, where they are due in a bin.
struct LoadFlow {
  std::uint32_t from = 0, to = 0;       ///< blocks
  std::uint32_t sent = 0, arrives = 0;  ///< bins
  std::uint64_t events = 0;
};

/// Collectives of one communicator whose last member joined in one bin, and whose first member completed in another.
struct LoadReply {
  std::uint32_t communicator = 0;
  std::uint32_t last_arrival = 0, completion = 0;  ///< bins
  std::uint64_t count = 0;
};

/// What the logical processes did, by blocks of them and by bins of simulated time of 2^shift ps. Rows are sorted by
/// their numbers, and none is empty. It depends on what is simulated, and on nothing else.
struct LoadRecord {
  std::uint32_t shift = 0;
  std::uint32_t num_blocks = 0;
  Time least_delay = Time::max();  ///< between blocks, from sending an event to its time; max() if there was none
  std::vector<LoadEvents> events;  ///< rows by block, bin
  std::vector<LoadFlow> flows;     ///< rows by from, to, sent, arrives
  std::vector<LoadReply> replies;  ///< rows by communicator, last arrival, completion

  std::uint64_t bin_width() const { return std::uint64_t{1} << shift; }
};

/// The number of bins that a record of so many blocks has at most. It is a power of two.
std::uint32_t most_bins(std::uint32_t num_blocks);

/// Sorts the rows of a record and adds those up that have the same numbers.
void sort_and_add(LoadRecord& record);

/// Makes the bins of a record wider: of 2^shift ps. Sorts and adds.
void coarsen(LoadRecord& record, std::uint32_t shift);

/// Makes the bins wider until there are few flows and replies, but leaves some bins. A record that was made in several
/// parts, each of which was limited, becomes what it would be if it had been made at once.
void limit_rows(LoadRecord& record);

}  // namespace orrery::pdes
