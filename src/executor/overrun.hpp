#pragma once

#include <optional>

#include "orrery/executor/executor.hpp"

namespace orrery::executor {

inline void keep_earliest(std::optional<Overrun>& kept, const Overrun& met) {
  if (!kept || met < *kept) kept = met;
}

}  // namespace orrery::executor
