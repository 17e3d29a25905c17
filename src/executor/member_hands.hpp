#pragma once

#include <cstdint>
#include <span>

#include "orrery/collective/script.hpp"

namespace orrery::executor {

/// A step of a service, to tell one from another in messages.
struct StepId {
  std::uint32_t service = 0;
  std::uint32_t step = 0;
};

/// As one number, for events.
constexpr std::uint64_t packed(StepId id) { return std::uint64_t{id.service} << 32U | id.step; }
constexpr StepId unpacked(std::uint64_t number) {
  return {static_cast<std::uint32_t>(number >> 32U), static_cast<std::uint32_t>(number)};
}

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
  virtual void send(std::uint32_t to, Bytes size, StepId step, Sent what, std::uint32_t own_step) = 0;
  /// A message leaves now for the switch of the line, which sends one of `result` to each of `members`, for this
  /// step, when it has those of all.
  virtual void send_to_switch(std::span<const collective::Script::Receiver> members, Bytes size, Bytes result,
                              StepId step, Sent what) = 0;
  /// `MemberRun::wake` shall be called at this time, which is later than now.
  virtual void wake(StepId step, Time time) = 0;

 protected:
  ~MemberHands() = default;
};

}  // namespace orrery::executor
