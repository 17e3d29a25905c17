#pragma once

#include <cstdint>
#include <span>

#include "orrery/collective/script.hpp"
#include "orrery/network/message.hpp"

namespace orrery::collective {

using network::StepId;

/// What a member of a collective does to the world.
class MemberHands {
 public:
  /// What a message of a step is.
  enum class Sent : std::uint8_t {
    data,
    data_with_receipt,  ///< `MemberRun::wake` shall be called when it is there
    word,               ///< asks for the data of the step
  };
  /// A message to another member leaves now, for this step of its. `own_step` is the one that a receipt wakes.
  virtual void send(std::uint32_t to, Bytes size, network::StepId step, Sent what, std::uint32_t own_step) = 0;
  /// A message leaves now for the switch of the line, which sends one of `result` to each of `members`, for this
  /// step, when it has those of all.
  virtual void send_to_switch(std::span<const Script::Receiver> members, Bytes size, Bytes result, network::StepId step,
                              Sent what) = 0;
  /// `MemberRun::wake` shall be called at this time, which is later than now.
  virtual void wake(network::StepId step, Time time) = 0;

 protected:
  ~MemberHands() = default;
};

}  // namespace orrery::collective
