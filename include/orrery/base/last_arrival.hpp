#pragma once

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"

namespace orrery {

/// The last one to come of those for whom something waits, as far as is known.
struct LastArrival {
  Time time;
  NpuId npu;

  /// Takes in what somebody else knows. Of those who came at one time, the one with the lowest number counts.
  void merge(const LastArrival& other) {
    if (other.time > time || (other.time == time && other.npu < npu)) *this = other;
  }
};

}  // namespace orrery
