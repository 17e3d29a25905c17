#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/load_record.hpp"

namespace orrery::pdes {

/// Where logical processes belong that are recorded.
struct LoadPlaces {
  std::uint32_t num_blocks = 1;         ///< 2^12 at most
  std::vector<std::uint32_t> block_of;  ///< [LPs] the block of each
  std::vector<char> is_spread;          ///< [communicators] whether members are in several blocks
};

/// Records the events of a rank by blocks of logical processes and bins of simulated time. How long the simulation
/// lasts is not known at the beginning, so bins become twice as wide whenever there are too many. Its memory is 32 MiB,
/// and less than 100 bytes for each flow. Costs O(1) for each event.
class LoadRecorder {
 public:
  explicit LoadRecorder(LoadPlaces places);

  /// Counts an event that a logical process handles.
  void count(LpId lp, Time now);
  /// Takes note of an event for another logical process.
  void pass(LpId from, Time sent, LpId to, Time arrives);
  /// Takes note of a collective.
  void reply(std::uint32_t communicator, Time last_arrival, Time first_end);

  /// Returns what has been recorded.
  LoadRecord record() const;

 private:
  using Counts = std::unordered_map<std::uint64_t, std::uint64_t>;

  void fit(Time time);
  void widen(std::uint32_t shift);
  void limit();
  std::uint64_t bin_of(Time time);

  LoadPlaces places_;
  std::uint32_t log_bins_ = 0;
  std::uint64_t num_bins_ = 1;
  std::uint32_t shift_ = 0;
  std::vector<std::uint64_t> events_;                  // [blocks][bins]
  Counts flows_;                                       // by blocks and bins
  std::unordered_map<std::uint32_t, Counts> replies_;  // by communicator, then by bins
  std::size_t num_replies_ = 0;
  Time least_delay_ = Time::max();
  Time latest_ = Time::zero();  // of flows and replies
};

}  // namespace orrery::pdes
