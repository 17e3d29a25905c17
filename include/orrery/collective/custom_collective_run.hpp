#pragma once

#include <cstdint>
#include <vector>

#include "orrery/collective/collective_transport.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// One member's part in a service of a custom collective, whose operations follow each other as its procedure says.
/// Steps are the procedure's numbers of operations. It refers to the script.
class CustomCollectiveRun {
 public:
  CustomCollectiveRun(const MessageProgram& script, std::uint32_t service, std::uint32_t member);

  std::uint32_t service() const { return service_; }
  /// The opening is over.
  void begin(Time now, CollectiveTransport& hands);
  /// An operation is over that has taken time, or whose message is there.
  void wake(std::uint32_t step, Time now, CollectiveTransport& hands);
  /// The message of a receive is there, perhaps before the member has begun.
  void receive(std::uint32_t step, Time now, CollectiveTransport& hands);
  bool is_done() const { return left_ == 0; }

 private:
  std::uint32_t& waits(std::uint32_t step) { return waits_[step - first_]; }
  /// It waits for one thing less.
  void release(std::uint32_t step);
  /// Carries out all that waits for nothing, and what follows from it at once.
  void run(Time now, CollectiveTransport& hands);
  void end(std::uint32_t step);

  const MessageProgram* script_;
  const CustomCollective* procedure_;
  std::uint32_t service_, member_;
  std::uint32_t first_;               // operation of the member
  std::uint32_t left_;                // operations that are not over
  std::vector<std::uint32_t> waits_;  // [operations] for dependencies, its message, and the beginning
  std::vector<std::uint32_t> ready_;  // a heap with the lowest on top
};

}  // namespace orrery::collective
