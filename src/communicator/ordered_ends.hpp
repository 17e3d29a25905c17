#pragma once

#include <optional>
#include <span>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/communicator/event_places.hpp"
#include "orrery/communicator/setup.hpp"
#include "orrery/communicator/spec.hpp"

namespace orrery::communicator {

/// A collective that all participants have joined. What is referred to outlives it.
struct JoinedByAll {
  const CommunicatorSpec& spec;
  const collective::GroupLayout& layout;
  collective::Kind kind;
  Bytes size;
  collective::Turn turn;              ///< the least turn of the participants, on which they agree
  std::span<const Time> arrivals;     ///< [members]
  std::span<const JoinPlace> places;  ///< [members]
};

/// When members end, and the places of these ends among simultaneous events.
struct OrderedEnds {
  std::vector<Time> times;       ///< [members]
  std::vector<EndPlace> places;  ///< [members]
};

/// Returns the ends of members by sending the messages of the collective one by one, in the order of their events. No
/// end is earlier than the host has promised. Returns nothing if the collective has too many messages, or messages
/// that have no order. O(messages * log members).
std::optional<OrderedEnds> ordered_ends(const Setup& setup, const JoinedByAll& joined);

}  // namespace orrery::communicator
