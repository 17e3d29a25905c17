#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "orrery/base/time.hpp"

namespace orrery::serving {

/// The fate of a request at one instance, or at all of them. Times of events that did not happen are negative.
struct RequestRecord {
  static constexpr Time never = Time::from_ps(-1);

  std::uint32_t id = 0;
  std::int32_t instance = -1;         ///< instance of the prefill
  std::int32_t decode_instance = -1;  ///< -1: the same, or none
  std::uint32_t preemptions = 0;
  Time arrival = never;
  Time scheduled = never;  ///< first admission
  Time first = never, last = never;
  std::uint64_t prefix_hit = 0;   ///< tokens found in prefix caches, at all admissions
  std::uint64_t lost = 0;         ///< tokens given up by preemptions
  std::uint64_t transferred = 0;  ///< tokens sent
  Time transfer_time = Time::zero();

  /// Adds the record of another instance about the request.
  void merge(const RequestRecord& other);
};

/// One request of a step.
struct StepItem {
  std::uint32_t request = 0, tokens = 0, context = 0;
};

struct StepRecord {
  std::uint32_t instance = 0, used_blocks = 0;
  std::uint64_t number = 0;
  Time scheduled, start, end;
  std::uint32_t num_items = 0, num_preempted = 0;
};

/// Sums over the steps of an instance. Sums over time are of whole numbers, and so exact.
struct InstanceRecord {
  std::uint32_t number = 0;
  std::uint32_t blocks = 0;
  std::uint64_t steps = 0, output_tokens = 0, prefill_tokens = 0, lost = 0, preemptions = 0, evicted = 0;
  Time busy = Time::zero();
  std::uint32_t peak_used = 0;
  std::uint32_t used_at_end = 0;
  std::uint64_t used_sum_high = 0, used_sum_low = 0;        ///< blocks in use times ps, 128 bits
  std::uint64_t running_sum_high = 0, running_sum_low = 0;  ///< requests that run times ps
  std::uint64_t waiting_sum_high = 0, waiting_sum_low = 0;
};

/// A histogram of the times between two tokens of a request, in which neighbouring limits differ by less than 1 %.
class TokenGaps {
 public:
  static constexpr unsigned sub_bits = 7;
  static constexpr std::size_t num_bins = std::size_t{64} << sub_bits;

  TokenGaps() : counts_(num_bins, 0) {}

  void add(Time gap) { ++counts_[bin_of(gap)]; }
  std::vector<std::int64_t>& counts() { return counts_; }
  const std::vector<std::int64_t>& counts() const { return counts_; }

  static std::size_t bin_of(Time gap) {
    const auto ps = static_cast<std::uint64_t>(gap.ps());
    if (ps < (std::uint64_t{1} << sub_bits)) return static_cast<std::size_t>(ps);
    const auto exponent = static_cast<unsigned>(std::bit_width(ps)) - 1 - sub_bits;
    return (static_cast<std::size_t>(exponent + 1) << sub_bits) + ((ps >> exponent) & ((1U << sub_bits) - 1));
  }
  /// Returns the middle of a bin in ps.
  static double middle_of(std::size_t bin) {
    const std::size_t exponent = bin >> sub_bits;
    const auto rest = static_cast<double>(bin & ((1U << sub_bits) - 1));
    if (exponent == 0) return rest;
    const double width = static_cast<double>(std::uint64_t{1} << (exponent - 1));
    return (static_cast<double>(1U << sub_bits) + rest) * width + (width - 1) / 2;
  }

 private:
  std::vector<std::int64_t> counts_;
};

}  // namespace orrery::serving
