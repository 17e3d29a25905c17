#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// When the members of a collective begin, and what its messages take (docs/model.md, 2).
struct MessageTimes {
  std::vector<Time> arrivals;               ///< [members]
  std::vector<std::uint32_t> first_to_act;  ///< the members, in the order in which those begin that arrive together
  std::function<Time(std::uint32_t from, std::uint32_t to, Bytes size)> delay;  ///< of a message between members
  Time endpoint_delay;
  bool rendezvous = false;
};

/// Returns the members in the order in which they end, by sending all messages of the collective one by one: of events
/// of one time the one that was scheduled first is the first, and so on. Empty if the program has operations or
/// switches that it does not know, or more than `most_messages` messages. O(messages * log members).
std::vector<std::uint32_t> end_order(const std::shared_ptr<const MessageProgram>& program, const MessageTimes& times,
                                     std::uint64_t most_messages);

}  // namespace orrery::collective
