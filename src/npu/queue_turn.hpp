#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/communicator/member_side.hpp"

namespace orrery::npu {

/// The turn of an NPU's queues and trees of chunks, where hosts carry collectives out. A queue that the end of a
/// collective frees is free when the NPU has begun what it begins because of that end, in the same event
/// (docs/model.md, 2).
struct QueueTurn {
  /// A collective that the NPU begins while a queue is held.
  struct Beside {
    communicator::Membership membership;
    communicator::Join join;
  };

  collective::Turn next;  ///< communicator::Join::turn of the next collective
  // Of the event at hand, where events have histories:
  std::optional<std::uint32_t> held = {};  ///< the place of the queue (collective::Turn::place_of)
  std::vector<Beside> beside = {};         ///< in the order in which it joins them when the queue is free
};

}  // namespace orrery::npu
