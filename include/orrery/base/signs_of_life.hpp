#pragma once

#include <atomic>
#include <cstdint>

namespace orrery {

/// What tells another thread of this process whether the main thread gets on. The main thread writes, any thread reads.
class SignsOfLife {
 public:
  /// Takes note that the main thread has done a part of its work, or has heard from another rank. A few instructions.
  static void give() {
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    allowance_.store(0, std::memory_order_relaxed);
  }
  /// Does the same, and says that what follows may take so many seconds longer than usual without a sign.
  static void give_with_allowance(std::uint32_t seconds) {
    give();
    allowance_.store(seconds, std::memory_order_relaxed);
  }

  static std::uint64_t count() { return count_.load(std::memory_order_relaxed); }
  static std::uint32_t allowance() { return allowance_.load(std::memory_order_relaxed); }
  static bool waits_for_ranks() { return waits_.load(std::memory_order_relaxed); }

 private:
  friend class WaitForRanks;

  static inline std::atomic<std::uint64_t> count_{0};
  static inline std::atomic<std::uint32_t> allowance_{0};
  static inline std::atomic<bool> waits_{false};
};

/// While it lives, the main thread can do nothing before other ranks have done something. Its end is a sign of life.
class WaitForRanks {
 public:
  WaitForRanks() { SignsOfLife::waits_.store(true, std::memory_order_relaxed); }
  ~WaitForRanks() {
    SignsOfLife::waits_.store(false, std::memory_order_relaxed);
    SignsOfLife::give();
  }
  WaitForRanks(const WaitForRanks&) = delete;
  WaitForRanks& operator=(const WaitForRanks&) = delete;
};

}  // namespace orrery
