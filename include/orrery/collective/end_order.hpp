#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "orrery/base/event_history.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// When the members of a collective begin, and what its messages take (docs/model.md, 2).
struct MessageTimes {
  std::vector<Time> arrivals;  ///< [members]
  /// [members] of the first event that a member schedules when it begins. The others that it schedules then follow
  /// beside it.
  std::vector<EventHistory> histories;
  std::function<Time(std::uint32_t from, std::uint32_t to, Bytes size)> delay;  ///< of a message between members
  Time endpoint_delay;
  bool rendezvous = false;
};

/// Returns the histories of the events with which members end, [members], by sending all messages of the collective one
/// by one. Empty if the program has operations or switches that it does not know, or more than `most_messages`
/// messages. O(messages * log members).
std::vector<EventHistory> end_histories(const std::shared_ptr<const MessageProgram>& program, const MessageTimes& times,
                                        std::uint64_t most_messages);

}  // namespace orrery::collective
