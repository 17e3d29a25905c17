#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/collective/custom_collective.hpp"
#include "orrery/collective/sliding_window.hpp"
#include "orrery/collective/step.hpp"

namespace orrery::collective {

/// One step of a member of a collective.
struct MemberStep {
  Step step;  ///< step in terms of members; through the switch, `sends` are those who get the result
  /// The step ends this long after all that it waits for, and after `reduction`.
  Time cost;
  Time reduction;
  bool is_clear_to_send = false;  ///< the message through the switch carries no data: it is one of rendezvous
};

/// One collective message by message: what each member sends, to whom, and what it waits for before it goes on. It has
/// the same phases, messages and costs as those of which Engine::finish gives the end (docs/collectives.md), without
/// any delay of the network. Immutable; members are positions in the communicator. Not thread-safe: see `step`.
///
/// A service is one chunk in one phase. Services take slots of the queues in one order, that of members that arrive
/// together, and all members keep this order: so no members wait for each other in a circle. In a service a member goes
/// through its steps one by one. Of a broadcast or reduce that goes whole, dimension groups that hold no data send
/// messages without bytes. The steps of a custom collective do not follow each other one by one, but as it says.
class MessageProgram {
 public:
  using Receiver = collective::Receiver;

  struct Service {
    std::uint32_t chunk = 0;
    std::uint32_t phase = 0;  ///< phase of the chunk
    std::uint32_t stage = 0;  ///< which phase that is, of all that chunks have
  };

  /// Working parts; made by Engine::message_program.
  struct Parts;
  explicit MessageProgram(std::unique_ptr<const Parts> parts);
  ~MessageProgram();

  std::uint32_t num_chunks() const { return num_chunks_; }
  std::span<const Service> services() const { return services_; }
  std::uint32_t num_queues() const { return static_cast<std::uint32_t>(queues_.size()); }
  /// Returns the services of a queue in their order, as indices.
  std::span<const std::uint32_t> queue(std::uint32_t q) const { return queues_[q]; }
  std::uint32_t queue_of(std::uint32_t service) const { return queue_of_[service]; }
  /// Returns the services of the queue that a member has under way at a time.
  std::uint32_t slots(std::uint32_t q) const { return slots_[q]; }

  /// Returns whether a member lets others send before it sends its own data in a step (network::Rules::clears_first).
  bool sends_clears_first() const;
  /// Returns whether a member begins chunk by chunk what several queues may begin at once (Rules).
  bool begins_in_order_of_chunks() const;
  /// Returns the number of the queue of a service among all queues, as every collective counts them from its own first
  /// one: the dimension times the number of queues of a dimension, and the queue there (Turn::place_of).
  std::uint32_t place_of_queue(std::uint32_t service) const;
  /// Returns the time from the start of a service to its first step.
  Time opening(std::uint32_t service) const;
  /// Returns the custom collective that carries out the service; null if an algorithm does. Its steps are the
  /// operations of the custom collective, numbered as there. A receive ends `cost` after its message has been
  /// delivered. A send that awaits delivery ends when its message has been delivered, another one at once.
  const CustomCollective* custom_collective(std::uint32_t service) const;
  /// Returns how members go through the steps of the service, which are one message each; null: one after the other. A
  /// message is reduced, which takes `reduction`, where the window says so.
  const SlidingWindow* sliding_window(std::uint32_t service) const;
  std::uint32_t num_steps(std::uint32_t service, std::uint32_t member) const;
  /// Returns a step of a member. The result is valid until the next call. O(messages of the step).
  const MemberStep& step(std::uint32_t service, std::uint32_t k, std::uint32_t member) const;

  /// Returns the bytes that the program holds, within a factor of two.
  std::size_t memory() const;

 private:
  std::unique_ptr<const Parts> parts_;
  std::uint32_t num_chunks_ = 0;
  std::vector<Service> services_;
  std::vector<std::uint32_t> queue_of_;             ///< [services]
  std::vector<std::vector<std::uint32_t>> queues_;  ///< without those that are not used
  std::vector<std::uint32_t> slots_;                ///< [queues]
  mutable MemberStep step_;                         ///< the last one that was asked for
};

/// Returns the bytes of the message by which a receiver lets a sender send (rendezvous, docs/model.md, 4).
Bytes clear_to_send_size();

}  // namespace orrery::collective
