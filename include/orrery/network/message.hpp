#pragma once

#include <cstdint>

#include "orrery/base/ids.hpp"
#include "orrery/base/last_arrival.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/pdes/model.hpp"

namespace orrery::network {

/// A step of a service, which tells the messages of one collective apart (collective::MemberRun).
struct StepId {
  std::uint32_t service = 0;
  std::uint32_t step = 0;
};

/// Returns the two numbers of a step as one, for events.
constexpr std::uint64_t packed(StepId id) { return std::uint64_t{id.service} << 32U | id.step; }
constexpr StepId unpacked(std::uint64_t number) {
  return {static_cast<std::uint32_t>(number >> 32U), static_cast<std::uint32_t>(number)};
}

/// A message from an NPU to another one in a network that simulates every link. Trivially copyable: it travels between
/// ranks as it is.
struct Message {
  enum class Kind : std::uint8_t {
    data,                ///< data of a send
    clear_to_send,       ///< to the sender: a receive has been posted (rendezvous)
    step_data,           ///< data of a step of a collective
    step_clear_to_send,  ///< to the sender of `step_data`: the receiver has come to the step (rendezvous)
    request,             ///< request of a thread block to the memory of another GPU, or its answer
  };

  /// The step of a collective that a message belongs to.
  struct Step {
    GroupId group;
    std::uint32_t ordinal = 0;  ///< ordinal of the collective in its group
    std::uint32_t member = 0;   ///< position of the source in the group
    StepId id;                  ///< the receiver's step; of step_clear_to_send that of the data it asks for
    /// The source's step of the same service that is woken when the message is at its destination, if wants_receipt is
    /// set.
    std::uint32_t receipt_step = 0;
    bool wants_receipt = false;
  };
  /// What a switch does with a message that it combines with others, or copies (Dimension::in_switch_operations).
  struct Combining {
    std::uint32_t parts = 0;  ///< messages to a destination that the switch makes one of; 0: it only forwards
    Bytes result = {};        ///< size of that one
    std::uint32_t chunk = 0;  ///< chunk of the collective
  };
  /// What a message of Kind::request is for its source and destination. `step` says of which collective and thread
  /// block it is. Links look at the first two and at `after` only.
  struct Request {
    bool passes_data = false;   ///< links serve it at once, ahead of messages that wait
    bool wants_notice = false;  ///< its source is told when it has left its first link (Delivery::left)
    bool has_packets = false;
    bool wants_ack = false;
    std::uint8_t kind = 0;
    std::uint8_t buffer = 0;
    std::uint32_t slot = 0;  ///< slot of the source, which notices carry back
    std::uint32_t tag = 0;
    std::uint32_t group = 0;    ///< group of a switch
    std::uint32_t members = 0;  ///< members of this group
    NpuId beside = {};          ///< another member of this group
    std::uint64_t offset = 0, bytes = 0, held = 0;
    Time after = {};  ///< from the end of the last link until the destination takes note of it
  };
  /// The piece of a message that this is, with cut-through.
  struct Packet {
    bool is_at_first_link = true;  ///< first link of its dimension: the packet behind it follows when this one has left
    std::uint64_t offset = 0;      ///< its first byte
    Time tail = {};                ///< when its last byte is at the link
  };

  NpuId source, destination;
  NodeId node = {};       ///< node of the source
  std::uint32_t tag = 0;  ///< tag of a send
  Bytes size;             ///< size of the whole message
  Kind kind = Kind::data;
  /// The dimension, counted from 1, in which a switch has sent it another way than the regular one; 0: none has.
  std::uint8_t deflected = 0;
  /// Whether one cell, or one rank, has all links of its way, its source and its destination.
  pdes::Scope scope = pdes::Scope::anywhere;
  std::uint32_t circuits = 0;  ///< configuration of the circuits over which it goes (topology::Circuits)
  LastArrival last = {};       ///< arrival of those on whom the message depends: of a send it is the sender
  Step step = {};
  Combining combining = {};
  Packet packet = {};
  Request request = {};
};

/// The kinds of events by which a network that simulates every link tells NPUs of their messages.
enum class Delivery : std::uint16_t {
  arrived = 32,  ///< a message is at the NPU: MessageNetwork::take returns it
  sent,          ///< the message of the NPU's send `node` is at its destination
  wake,          ///< step `detail` (packed) of the NPU's collective `node` goes on
  left,          ///< a request of slot `node` of the NPU has left its first link; `detail`: see left_detail
};

/// What an event `Delivery::left` says of the request: its thread block, and the bytes that it held.
struct LeftRequest {
  std::uint32_t block = 0;
  std::uint64_t held = 0;
};
constexpr std::uint64_t left_detail(LeftRequest left) { return left.held << 20U | left.block; }
constexpr LeftRequest left_request(std::uint64_t detail) {
  return {static_cast<std::uint32_t>(detail & ((1U << 20U) - 1)), detail >> 20U};
}

}  // namespace orrery::network
