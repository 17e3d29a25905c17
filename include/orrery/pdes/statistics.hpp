#pragma once

#include <cstdint>

namespace orrery::pdes {

/// What the kernel of one rank counts and measures. Trivially copyable.
struct Statistics {
  std::uint64_t events = 0;                  ///< events handled
  std::uint64_t data_messages = 0;           ///< messages sent that carry events or posts
  std::uint64_t null_messages = 0;           ///< messages sent that carry promises, or requests for them, alone
  std::uint64_t null_messages_received = 0;  ///< the same, received
  std::uint64_t promise_requests = 0;        ///< requests for promises sent, with data or without
  std::uint64_t events_sent = 0;             ///< events sent to other ranks, many in a message
  std::uint64_t posts_sent = 0;              ///< posts sent to other ranks, likewise
  std::uint64_t message_bytes = 0;           ///< bytes of all messages sent
  std::uint64_t reductions = 0;              ///< reductions joined
  std::uint64_t waits = 0;                   ///< times that no event could be handled
  std::uint64_t peak_pending_events = 0;     ///< largest number of events that waited at one moment
  std::uint64_t critical_path = 0;           ///< events on the longest chain of causes
  double blocked_time = 0;                   ///< wall-clock seconds in which no event could be handled
  double busy_time = 0;                      ///< seconds of the processor that the run took otherwise
};

}  // namespace orrery::pdes
