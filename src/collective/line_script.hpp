#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "line.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// What the places of a line do in a phase, step by step: MessageProgram in terms of places.
class LineScript {
 public:
  using Move = MessageProgram::Move;
  using Receiver = MessageProgram::Receiver;  ///< `member` is a place

  /// `opening`: from the start to the first step.
  explicit LineScript(Time opening) : opening_(opening) {}
  virtual ~LineScript() = default;

  Time opening() const { return opening_; }
  /// MessageProgram::procedure.
  virtual const CustomCollective* procedure() const { return nullptr; }
  virtual std::uint32_t num_steps(std::uint32_t place) const = 0;
  virtual Move move(std::uint32_t chunk, std::uint32_t place, std::uint32_t step) const = 0;
  /// Appended in the order in which the place sends.
  virtual void receivers(std::uint32_t chunk, std::uint32_t place, std::uint32_t step,
                         std::vector<Receiver>& out) const = 0;
  /// Appended: places.
  virtual void senders(std::uint32_t chunk, std::uint32_t place, std::uint32_t step,
                       std::vector<std::uint32_t>& out) const = 0;
  /// Bytes that it holds, within a factor of two.
  virtual std::size_t memory() const = 0;

 private:
  Time opening_;
};

std::unique_ptr<LineScript> make_procedure_script(const PhaseShape& shape, const LineContext& context);
/// For all lines of the axis.
std::unique_ptr<LineScript> make_line_script(const PhaseShape& shape, const LineContext& context);

}  // namespace orrery::collective
