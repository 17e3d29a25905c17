#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/network/delay_model.hpp"
#include "orrery/topology/circuits.hpp"

namespace orrery::network {

/// Computes the delays of messages that nothing else blocks, and counts what passes through each dimension. Counts
/// are whole numbers, so that sums over ranks do not depend on the partition. Messages take the first configuration of
/// circuits unless another one is given.
class Analytical {
 public:
  /// Both must outlive it; `circuits` may be null.
  explicit Analytical(const DelayModel& delays, const topology::Circuits* circuits = nullptr);

  /// Returns the time from the moment when `from` sends to the moment when the whole message is at `to`: at least one
  /// tick. O(dimensions).
  Time delay(NpuId from, NpuId to, Bytes size) const {
    return delays_.delay(position_of(circuits_, 0, from), position_of(circuits_, 0, to), size);
  }

  /// Counts a message, or `times` messages that are alike, in every dimension that the rules charge.
  void count_message(NpuId from, NpuId to, Bytes size, std::uint64_t times = 1);
  /// Counts a message in every dimension in which the two NPUs differ, whatever the rules charge.
  void count_way(NpuId from, NpuId to, Bytes size, std::uint32_t configuration = 0);
  /// Counts a collective in which each of `members` NPUs sent `per_member[d]` bytes in dimension d. Several collectives
  /// that are alike may be counted at once, with the members of all.
  void count_collective(std::span<const Bytes> per_member, std::uint64_t members);

  /// Writes the counts, or reads some and adds them.
  void serialize_sums(Archive& archive);

  /// Returns whether the counted bytes fit: a count that does not is the largest number of its type.
  bool in_range() const;

  std::span<const Bytes> bytes() const { return bytes_; }  ///< [num_dimensions]
  /// Returns the time that links spent on those bytes, summed over links. [num_dimensions]
  std::span<const SumOfTimes> busy_time() const { return busy_time_; }

 private:
  void count(std::uint32_t dimension, Bytes size, std::uint64_t times);

  const DelayModel& delays_;
  const topology::Circuits* circuits_;
  std::vector<Bytes> bytes_;
  std::vector<SumOfTimes> busy_time_;
};

}  // namespace orrery::network
