#pragma once

#include <cstdint>
#include <span>

#include "orrery/collective/message_program.hpp"
#include "orrery/network/message.hpp"

namespace orrery::collective {

using network::StepId;

/// The step with which a member begins a service, before the first of its steps.
inline constexpr std::uint32_t opening_step = ~std::uint32_t{0};

/// Carries the messages of one member of a collective and wakes it later. MemberRun calls it; the owner of the member
/// implements it, over links or in a test. Its functions must not call a MemberRun before they return.
class CollectiveTransport {
 public:
  /// What a message carries.
  enum class Payload : std::uint8_t {
    data,
    acknowledged_data,  ///< the transport calls MemberRun::wake of the sender when the data have been delivered
    clear_to_send,      ///< no data: the receiver lets the sender of a step send (rendezvous)
  };
  /// Sends `size` bytes to member `to` now, for step `step` of the receiver. `own_step` is the sender's step that is
  /// woken when `acknowledged_data` have been delivered.
  virtual void send(std::uint32_t to, Bytes size, StepId step, Payload payload, std::uint32_t own_step) = 0;
  /// Sends `size` bytes now to the switch of the dimension group. When the switch has the messages of all `members` for
  /// this step, it sends one message of `result` bytes to each of them. `chunk`: number of the chunk that is served.
  virtual void send_to_switch(std::span<const MessageProgram::Receiver> members, Bytes size, Bytes result, StepId step,
                              Payload payload, std::uint32_t chunk) = 0;
  /// Calls MemberRun::wake for `step` at `time`, which is later than now. `reduces`: what has come is reduced by then,
  /// perhaps in no time.
  virtual void wake(StepId step, Time time, bool reduces) = 0;
  /// Takes note that more messages have come for a step than it has, so that the programs of members do not fit each
  /// other. By default this is a fault of Orrery.
  virtual void note_misfit();

 protected:
  ~CollectiveTransport() = default;
};

}  // namespace orrery::collective
