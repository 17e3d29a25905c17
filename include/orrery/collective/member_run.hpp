#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "orrery/collective/collective_transport.hpp"
#include "orrery/collective/custom_collective_run.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// Carries out what one member does in a MessageProgram: it keeps which services are under way, in which step each is,
/// and which messages have come. It keeps nothing of steps that are over, and of steps to come only what came early.
class MemberRun {
 public:
  MemberRun(std::shared_ptr<const MessageProgram> program, std::uint32_t member, bool rendezvous);

  /// Starts the collective for this member. Call it once.
  void begin(Time now, CollectiveTransport& transport);
  /// Does the same while a slot of a queue is still held. `free_slot` must follow, at the same time.
  void begin_beside(std::uint32_t queue, Time now, CollectiveTransport& transport);
  /// Frees the slot, if the collective has such a queue.
  void free_slot(std::uint32_t queue, Time now, CollectiveTransport& transport);
  /// Returns MessageProgram::place_of_queue of the service that has ended last.
  std::uint32_t last_queue() const { return last_queue_; }
  /// Goes on with a step for which CollectiveTransport::wake was called, or whose acknowledged data were delivered.
  void wake(StepId step, Time now, CollectiveTransport& transport);
  /// Takes a message of another member for a step of this one. The step may be over or to come.
  void receive(std::uint32_t from, StepId step, bool is_clear_to_send, Time now, CollectiveTransport& transport);

  /// Returns whether data still wait for a clear to send. This may be so when the member is done (rendezvous).
  bool has_unsent_data() const { return !unsent_.empty(); }
  bool is_done() const { return num_done_ == program_->services().size(); }
  /// Writes the state, or reads that of the same member in the same program.
  void serialize(Archive& archive);

 private:
  enum class State : std::uint8_t { opening, receiving, closing };
  struct Active {
    std::uint32_t service = 0;
    std::uint32_t step = 0;
    std::uint32_t missing = 0;  ///< messages and acknowledgements, in state receiving
    State state = State::opening;
    bool reduces = false;  ///< the step
    Time cost;             ///< cost of the step
  };
  /// Messages of a step that has not begun.
  struct Early {
    std::uint32_t service = 0;
    std::uint32_t step = 0;
    std::uint32_t count = 0;
  };
  /// Rendezvous: data that wait for a clear to send, or a clear to send that waits for the data. `step` is the
  /// receiver's.
  struct Rendezvous {
    std::uint32_t service = 0;
    std::uint32_t step = 0;
    std::uint32_t other = 0;       ///< member
    Bytes size;                    ///< size of the data
    bool awaits_delivery = false;  ///< delivery of the data is awaited
  };
  static bool is_same(const Rendezvous& data, const Rendezvous& clear) {
    return data.service == clear.service && data.step == clear.step && data.other == clear.other;
  }
  void send(const Rendezvous& data, CollectiveTransport& transport);

  /// A service of direct with a sliding window.
  struct Sliding {
    std::uint32_t service = 0;
    SlidingPosition position = {};
    Time late_since = {};  ///< when it took messages last that were there before

    void serialize(Archive& archive) { archive(service, position, late_since); }
  };
  Sliding* sliding(std::uint32_t service);
  void wake(Sliding& here, StepId id, Time now, CollectiveTransport& transport);
  void take_message(Sliding& here, Time now, CollectiveTransport& transport);
  void reduce(const Sliding& here, std::uint32_t number, Time now, CollectiveTransport& transport);
  Time delay_of_credit(const Sliding& here, std::uint32_t number) const;
  void take_credits(Sliding& here, std::uint32_t count, Time now, CollectiveTransport& transport);
  void begin_messages(Sliding& here, std::uint32_t first, Time now, CollectiveTransport& transport);

  Active& active(std::uint32_t service);
  void start_services(Time now, CollectiveTransport& transport);
  void start(std::uint32_t service, Time now, CollectiveTransport& transport);
  void proceed(std::uint32_t service, Time now, CollectiveTransport& transport);
  bool begin_step(Active& active, CollectiveTransport& transport);
  void send_clears(std::uint32_t service, std::uint32_t k, const Step& step, CollectiveTransport& transport);
  void send_or_wait(std::uint32_t service, const Step& step, std::size_t message, CollectiveTransport& transport);
  void take_one(Active& active, Time now, CollectiveTransport& transport);
  CustomCollectiveRun* custom_run(std::uint32_t service);
  void finish_custom(const CustomCollectiveRun& run, Time now, CollectiveTransport& transport);
  void begin(CustomCollectiveRun& run, Time now, CollectiveTransport& transport);
  void finish(std::uint32_t service, Time now, CollectiveTransport& transport);
  void end_service(std::uint32_t service, Time now, CollectiveTransport& transport);
  std::uint32_t step_with(std::uint32_t other, StepId id, bool is_clear_to_send) const;
  std::optional<std::uint32_t> find_queue(std::uint32_t place) const;
  std::vector<Early>::iterator find_early(StepId step);
  std::uint32_t take_early(std::uint32_t service, std::uint32_t step);

  std::shared_ptr<const MessageProgram> program_;
  std::uint32_t member_;
  bool rendezvous_;
  bool is_starting_ = false;
  std::uint32_t num_done_ = 0;
  std::uint32_t last_queue_ = 0;
  std::vector<std::uint32_t> next_;   // [queues] index of the next service that starts
  std::vector<std::uint32_t> slots_;  // [queues] that are free
  std::vector<std::uint32_t> phase_;  // [chunks] phases that are over
  std::vector<Active> active_;
  std::vector<CustomCollectiveRun> custom_runs_;  // services of custom collectives that are under way
  std::vector<Sliding> sliding_;                  // services with a sliding window that are under way
  std::vector<Early> early_;
  std::vector<Rendezvous> unsent_;          // data of steps that have begun
  std::vector<Rendezvous> clears_to_send_;  // for steps that have not
};

}  // namespace orrery::collective
