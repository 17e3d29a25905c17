#pragma once

#include <cstdint>

#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// What the positions of a dimension group do in a phase, message by message: MessageProgram in terms of positions.
class PositionProgram {
 public:
  /// `opening`: the time from the start to the first step.
  explicit PositionProgram(Time opening) : opening_(opening) {}
  virtual ~PositionProgram() = default;

  Time opening() const { return opening_; }
  /// See MessageProgram::custom_collective.
  virtual const CustomCollective* custom_collective() const { return nullptr; }
  /// See MessageProgram::sliding_window.
  virtual const SlidingWindow* sliding_window() const { return nullptr; }
  virtual std::uint32_t num_steps(std::uint32_t position) const = 0;
  virtual void step(std::uint32_t position, std::uint32_t k, MemberStep& out) const = 0;
  /// Returns the bytes that the program holds, within a factor of two.
  virtual std::size_t memory() const = 0;

 private:
  Time opening_;
};

}  // namespace orrery::collective
