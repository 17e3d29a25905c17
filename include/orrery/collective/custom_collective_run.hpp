#pragma once

#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/collective/collective_transport.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// Carries out what one member does in a service of a custom collective, whose operations follow each other as the file
/// says. Steps are the custom collective's numbers of operations. The program must outlive it.
class CustomCollectiveRun {
 public:
  CustomCollectiveRun(const MessageProgram& program, std::uint32_t service, std::uint32_t member);

  std::uint32_t service() const { return service_; }
  /// Starts the operations: the opening is over.
  void begin(Time now, CollectiveTransport& transport);
  /// Ends an operation that has taken time, or whose message has been delivered.
  void wake(std::uint32_t operation, Time now, CollectiveTransport& transport);
  /// Takes the message of a receive, perhaps before the member has begun.
  void receive(std::uint32_t operation, Time now, CollectiveTransport& transport);
  bool is_done() const { return left_ == 0; }

  void serialize(Archive& archive) { archive(left_, waits_, ready_); }

 private:
  std::uint32_t& waits(std::uint32_t operation) { return waits_[operation - first_]; }
  /// Counts one of the things that an operation waits for.
  void release(std::uint32_t operation);
  /// Carries out all operations that wait for nothing, and those that follow from them at once.
  void run(Time now, CollectiveTransport& transport);
  void end(std::uint32_t operation);

  const MessageProgram* program_;
  const CustomCollective* custom_;
  std::uint32_t service_, member_;
  std::uint32_t first_;               // operation of the member
  std::uint32_t left_;                // operations that are not over
  std::vector<std::uint32_t> waits_;  // [operations] for dependencies, its message, and the beginning
  std::vector<std::uint32_t> ready_;  // a heap with the lowest on top
};

}  // namespace orrery::collective
