#pragma once

#include <cstdint>

#include "orrery/base/error.hpp"
#include "orrery/pdes/model.hpp"

namespace orrery::npu {

/// Counts nodes under way whose end is not known, by what their end depends on.
class AwaitedCounts {
 public:
  void add(const pdes::Awaited& awaited) {
    here_ += awaited.here;
    sends_ += awaited.sends;
    replies_ += awaited.replies;
  }
  void remove(const pdes::Awaited& awaited) {
    ensure(here_ >= awaited.here && sends_ >= awaited.sends && replies_ >= awaited.replies,
           "what was not awaited becomes known");
    here_ -= awaited.here;
    sends_ -= awaited.sends;
    replies_ -= awaited.replies;
  }
  /// Returns what any of the nodes awaits.
  pdes::Awaited awaited() const { return {here_ > 0, sends_ > 0, replies_ > 0}; }

 private:
  std::uint32_t here_ = 0, sends_ = 0, replies_ = 0;
};

}  // namespace orrery::npu
