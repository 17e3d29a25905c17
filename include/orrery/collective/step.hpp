#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/base/quantity.hpp"

namespace orrery::collective {

/// The receiver of a message. In the steps of an algorithm `member` is a position in a dimension group, in a
/// MessageProgram a position in the communicator.
struct Receiver {
  std::uint32_t member = 0;
  std::uint32_t step = 0;  ///< the receiver's step in which it waits for the message
};

/// What crosses the links to the switch of a dimension group when the switch carries out an operation.
struct SwitchLoad {
  Bytes up;    ///< the most that a position sends
  Bytes down;  ///< bytes that the switch sends to each position
};

/// One step of one position. It begins when the step before it has ended. The position sends its messages at once,
/// waits until all messages that it receives in this step have been delivered, and then pays for the endpoint and for
/// the reductions.
struct Step {
  Bytes bytes;                          ///< size of each message that the position sends
  std::vector<Receiver> sends;          ///< receivers in the order of sending
  std::vector<Bytes> sizes;             ///< bytes of each message where they differ; empty: all have `bytes`
  std::vector<std::uint32_t> receives;  ///< the senders of the messages that it waits for
  Bytes reduced;                        ///< bytes of each reduction after the last message
  std::uint32_t num_reductions = 0;
  bool pays_endpoint_delay = true;
  bool awaits_delivery = false;  ///< it also waits until the messages that it sends have been delivered
  /// If any: the position sends `bytes` to the switch, which waits for the messages of all positions in this step and
  /// then sends one message to each of them. `sends` and `receives` are empty.
  std::optional<SwitchLoad> through_switch = {};

  Bytes size_of(std::size_t message) const { return sizes.empty() ? bytes : sizes[message]; }

  /// Makes the step empty and keeps its memory.
  void reset() {
    sends.clear();
    sizes.clear();
    receives.clear();
    bytes = reduced = Bytes(0);
    num_reductions = 0;
    pays_endpoint_delay = true;
    awaits_delivery = false;
    through_switch.reset();
  }
};

}  // namespace orrery::collective
