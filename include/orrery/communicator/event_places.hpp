#pragma once

#include <cstdint>
#include <optional>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_place.hpp"
#include "orrery/collective/options.hpp"

namespace orrery::communicator {

/// The place, among simultaneous events, of what a participant schedules when it joins a collective
/// (Setup::knows_places).
struct JoinPlace {
  EventPlace first;       ///< place of the first event that the first step schedules; the others follow directly
  collective::Turn turn;  ///< Join::turn of the participant
  /// Queue (collective::Turn::place_of) that is free only when the participant has begun all that it begins in this
  /// event; none: all queues are free.
  std::optional<std::uint32_t> held_queue = {};
  EventPlace freed = {};  ///< place of the first event that the participant schedules when the queue is free

  void serialize(Archive& archive) { archive(first, turn, held_queue, freed); }
};

/// The place, among simultaneous events, of the end of a participant's part in a collective (Setup::knows_places).
struct EndPlace {
  EventPlace end;                           ///< unknown if the messages of the collective are not known
  std::optional<std::uint32_t> last_queue;  ///< queue that served last; none if the messages are not known

  void serialize(Archive& archive) { archive(end, last_queue); }
};

}  // namespace orrery::communicator
