#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace orrery::collective {

/// How a position of direct sends its messages with a window (Rules::sliding_windows). It has `window` credits. A
/// message that it sends takes one. A message that it has received, and has reduced where that is due, gives one back,
/// and the position sends its next message. In the second half of an all-reduce nobody sends before all messages of the
/// first half have come.
struct SlidingWindow {
  std::uint32_t window = 1;
  std::uint32_t num_messages = 1;  ///< messages that a position sends, and as many that it receives
  std::uint32_t first_half = 0;    ///< messages of the first half of an all-reduce; otherwise 0
  bool reduces = false;
  /// The messages that a position takes in go through a cycle: so many are reduced, after `window` that are not. The
  /// first `window` of the first cycle are the position's own.
  std::uint32_t cycle = 1;

  /// Returns whether a position reduces the k-th message that it receives, from 0. An all-reduce reduces in every
  /// second cycle only.
  bool reduces_message(std::uint32_t k) const {
    const std::uint64_t taken = std::uint64_t{window} + k, period = std::uint64_t{window} + cycle;
    return reduces && taken % period >= window && (first_half == 0 || taken / period % 2 == 0);
  }
};

/// Where a position is in its messages.
class SlidingPosition {
 public:
  std::uint32_t sent() const { return sent_; }

  /// Takes note of a received message and returns its number, from 0.
  std::uint32_t receive() { return received_++; }
  /// Does the same for a message that was there before. It counts from `count_late` on.
  std::uint32_t receive_late() { return received_ + late_++; }
  void count_late() { received_ += std::exchange(late_, 0U); }
  /// Takes back a credit. Returns how many messages the position sends now.
  std::uint32_t take_credit(const SlidingWindow& window) {
    ++credits_;
    const std::uint32_t left = window.num_messages - sent_;
    if (left > window.first_half) return spend(1);
    return left > 0 ? send_second_half(window) : 0;
  }
  /// Returns how many messages of the second half the position could send now with the credits that it has.
  std::uint32_t send_second_half(const SlidingWindow& window) {
    const std::uint32_t left = window.num_messages - sent_;
    if (left > window.first_half || received_ < window.first_half) return 0;
    return spend(std::min(credits_, left));
  }
  /// Returns whether all messages have been sent and received, and all credits are back.
  bool is_over(const SlidingWindow& window) const { return sent_ == window.num_messages && credits_ == window.window; }

 private:
  std::uint32_t spend(std::uint32_t credits) {
    credits_ -= credits;
    sent_ += credits;
    return credits;
  }

  std::uint32_t sent_ = 0, received_ = 0, credits_ = 0, late_ = 0;
};

}  // namespace orrery::collective
