#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::network {

/// The congestion-unaware network: a message takes what its own size, hops and links cost, whatever else is under way.
/// Counts what passes through each dimension, in whole numbers, so that sums over ranks do not depend on the partition.
class Analytical {
 public:
  explicit Analytical(const DelayModel& delays);

  /// From the moment when `from` sends to the moment when all of it is at `to`; at least one tick.
  Time delay(NpuId from, NpuId to, Bytes size) const { return delays_.delay(from, to, size); }

  /// A message passed, in every dimension that the rules charge; or `times` that are alike.
  void count_message(NpuId from, NpuId to, Bytes size, std::uint64_t times = 1);
  /// A message passed in every dimension in which the two differ, whatever the rules charge.
  void count_way(NpuId from, NpuId to, Bytes size);
  /// A collective passed in which each of `members` sent `per_member[d]` bytes in dimension d; or several that are
  /// alike, with so many members in all.
  void count_collective(std::span<const Bytes> per_member, std::uint64_t members);

  /// Whether the bytes that have been counted fit: a number that does not is the largest one of its type.
  bool in_range() const;

  std::span<const Bytes> bytes() const { return bytes_; }  ///< [num_dimensions]
  /// [num_dimensions] time that links spent on those bytes, summed over links
  std::span<const SumOfTimes> busy_time() const { return busy_time_; }

 private:
  void count(std::uint32_t dimension, Bytes size, std::uint64_t times);

  const DelayModel& delays_;
  std::vector<Bytes> bytes_;
  std::vector<SumOfTimes> busy_time_;
};

}  // namespace orrery::network
