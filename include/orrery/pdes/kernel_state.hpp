#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/pdes/event.hpp"

namespace orrery::pdes {

/// What a kernel holds between two calls of Kernel::run. None of it depends on which rank hosts an LP.
struct KernelState {
  struct Lp {
    LpId id;
    Time clock;               ///< time of the last event that it handled; before 0: none
    std::uint32_t depth = 0;  ///< events on the longest chain of causes that has reached it
  };
  Time now;                   ///< all events up to this time have been handled; LPs may be ahead of it
  std::vector<Event> events;  ///< pending, in the order in which they will be handled
  std::vector<Lp> lps;        ///< ascending; those without an entry are as at the start
  std::uint64_t num_handled = 0;
  std::uint64_t critical_path = 0;
};

}  // namespace orrery::pdes
