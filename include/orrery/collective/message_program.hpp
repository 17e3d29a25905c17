#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "orrery/collective/custom_collective.hpp"

namespace orrery::collective {

/// One collective message by message: what each member sends, to whom, and what it waits for before it goes on. The
/// same phases, messages and costs of which Engine::finish gives the end (docs/collectives.md), without any delay of
/// the network. Immutable; members are positions in the communicator.
///
/// A service is one chunk in one phase. Services take their places in the queues in one order, that of members that
/// arrive together, which all members keep: so nobody waits in a circle. A member goes through a service in steps: it
/// sends, waits until all messages of the step are there, and begins the next one `cost` and `reduction` later. Of a
/// broadcast or reduce that goes whole, lines that hold no data send messages without bytes. The steps of a custom
/// collective do not follow each other but as its procedure says.
class MessageProgram {
 public:
  struct Service {
    std::uint32_t chunk = 0;
    std::uint32_t phase = 0;  ///< of the chunk
    std::uint32_t stage = 0;  ///< which phase that is, of all that chunks have
  };
  /// What a member does in a step.
  struct Move {
    Bytes message;               ///< to each receiver
    std::uint32_t receives = 0;  ///< messages that it waits for
    Time cost = {};              ///< from the last of these, and its own sending, to the next step, with
    Time reduction = {};         ///< this
    /// It sends one message, and goes on when that is there.
    bool sends_one_by_one = false;
    /// If any: the message goes to the switch of the line, which waits for those of all receivers, of whom the member
    /// is one, and then sends each of them so much.
    std::optional<Bytes> from_switch = {};
    bool is_word = false;  ///< such a message carries no data: they are those of rendezvous
  };
  /// Somebody that a member sends to; `step` is the receiver's step in which it waits for the message.
  struct Receiver {
    std::uint32_t member = 0;
    std::uint32_t step = 0;
  };

  /// Working parts; made by Engine::script.
  struct Parts;
  explicit MessageProgram(std::unique_ptr<const Parts> parts);
  ~MessageProgram();

  std::uint32_t num_chunks() const { return num_chunks_; }
  std::span<const Service> services() const { return services_; }
  std::uint32_t num_queues() const { return static_cast<std::uint32_t>(queues_.size()); }
  /// Its services in their order, as indices.
  std::span<const std::uint32_t> queue(std::uint32_t q) const { return queues_[q]; }
  std::uint32_t queue_of(std::uint32_t service) const { return queue_of_[service]; }
  /// Services of the queue that a member has under way at a time.
  std::uint32_t places(std::uint32_t q) const { return places_[q]; }

  /// From the start of a service to its first step.
  Time opening(std::uint32_t service) const;
  std::uint32_t num_steps(std::uint32_t service, std::uint32_t member) const;
  Move move(std::uint32_t service, std::uint32_t step, std::uint32_t member) const;
  /// Of a custom collective, else null: its steps are the procedure's operations, numbered as there. A receive is over
  /// `cost` after its message is there, a send with `sends_one_by_one` when its message is there, else at once.
  const CustomCollective* procedure(std::uint32_t service) const;
  /// Cleared and filled, in the order in which the member sends. O(receivers).
  void receivers(std::uint32_t service, std::uint32_t step, std::uint32_t member, std::vector<Receiver>& out) const;
  /// Cleared and filled: those whose messages the member waits for. O(senders).
  void senders(std::uint32_t service, std::uint32_t step, std::uint32_t member, std::vector<std::uint32_t>& out) const;

  /// Bytes that it holds, within a factor of two.
  std::size_t memory() const;

 private:
  std::unique_ptr<const Parts> parts_;
  std::uint32_t num_chunks_ = 0;
  std::vector<Service> services_;
  std::vector<std::uint32_t> queue_of_;             ///< [services]
  std::vector<std::vector<std::uint32_t>> queues_;  ///< without those that are not used
  std::vector<std::uint32_t> places_;               ///< [queues]
};

/// The bytes of the word with which a receiver lets a sender begin (rendezvous, docs/model.md, 4).
Bytes clear_to_send_size();

}  // namespace orrery::collective
