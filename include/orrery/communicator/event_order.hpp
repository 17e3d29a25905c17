#pragma once

#include <cstdint>
#include <optional>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_history.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::communicator {

/// The place, among other events, of what a participant schedules when it joins a collective (Setup::orders_ends).
struct JoinOrder {
  EventHistory history;  ///< of the first event that the participant's first step schedules, directly before the others
  collective::Turn turn;  ///< Join::turn of the participant
  /// The place of a queue (collective::Turn::place_of) that is free only when the participant has begun all that it
  /// begins in the same event; none: all queues are free.
  std::optional<std::uint32_t> held_queue = {};
  EventHistory freed = {};  ///< of the first event that it schedules when that queue is free

  void serialize(Archive& archive) { archive(history, turn, held_queue, freed); }
};

/// The place, among other events, of the end of a participant's part in a collective (Setup::orders_ends).
struct EndOrder {
  EventHistory history;                     ///< of the end; of no event if the messages of the collective are not known
  std::optional<std::uint32_t> last_queue;  ///< the place of the queue whose service was the last, likewise

  void serialize(Archive& archive) { archive(history, last_queue); }
};

}  // namespace orrery::communicator
