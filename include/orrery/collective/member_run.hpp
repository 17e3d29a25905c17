#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "orrery/collective/collective_transport.hpp"
#include "orrery/collective/custom_collective_run.hpp"
#include "orrery/collective/message_program.hpp"

namespace orrery::collective {

/// One member's part in a collective that goes message by message (MessageProgram): which services are under way,
/// in which step each is, and what has come for it. Small: nothing is kept of steps that are over or to come, but what
/// came early.
class MemberRun {
 public:
  using Hands = CollectiveTransport;

  MemberRun(std::shared_ptr<const MessageProgram> script, std::uint32_t member, bool rendezvous);

  void begin(Time now, Hands& hands);
  void wake(StepId step, Time now, Hands& hands);
  /// A message of another member is there, for a step of this one that may be to come.
  void receive(std::uint32_t from, StepId step, bool is_word, Time now, Hands& hands);

  /// Rendezvous: receivers have yet to ask for data that were to be sent, perhaps when this member is done.
  bool is_asked_for_more() const { return !unsent_.empty(); }
  bool is_done() const { return num_done_ == script_->services().size(); }

 private:
  /// Not a step: what a service is woken for when its opening is over.
  static constexpr std::uint32_t opening_step = ~std::uint32_t{0};

  enum class State : std::uint8_t { opening, receiving, closing };
  struct Active {
    std::uint32_t service = 0;
    std::uint32_t step = 0;
    std::uint32_t missing = 0;  ///< messages and receipts, in state receiving
    State state = State::opening;
    Time cost;  ///< of the step
  };
  /// Messages of a step that has not begun.
  struct Early {
    std::uint32_t service = 0;
    std::uint32_t step = 0;
    std::uint32_t count = 0;
  };
  /// Rendezvous: data that wait for the receiver's word; or a word that waits for the data.
  struct Meeting {
    std::uint32_t service = 0;
    std::uint32_t step = 0;
    std::uint32_t other = 0;
    Bytes size;                  ///< of the data, and
    bool wants_receipt = false;  ///< whether the sender waits until they are there
  };
  static bool is_same(const Meeting& data, const Meeting& word) {
    return data.service == word.service && data.step == word.step && data.other == word.other;
  }
  static void send(const Meeting& data, Hands& hands);

  Active& active(std::uint32_t service);
  void start_what_may(Time now, Hands& hands);
  void start(std::uint32_t service, Time now, Hands& hands);
  /// Goes on until the service waits for something or is over.
  void proceed(std::uint32_t service, Time now, Hands& hands);
  bool begin_step(Active& active, Hands& hands);
  void send_or_meet(const Active& active, const MessageProgram::Receiver& to, const MessageProgram::Move& move,
                    Hands& hands);
  void one_less(Active& active, Time now, Hands& hands);
  CustomCollectiveRun* graph(std::uint32_t service);
  /// Of a custom collective: the service is over if all of it is.
  void finish_graph(const CustomCollectiveRun& graph, Time now, Hands& hands);
  void begin(CustomCollectiveRun& graph, Time now, Hands& hands);
  void finish(std::uint32_t service, Time now, Hands& hands);
  void end_service(std::uint32_t service, Time now, Hands& hands);
  std::vector<Early>::iterator find_early(StepId step);
  std::uint32_t take_early(std::uint32_t service, std::uint32_t step);

  std::shared_ptr<const MessageProgram> script_;
  std::uint32_t member_;
  bool rendezvous_;
  bool is_starting_ = false;
  std::uint32_t num_done_ = 0;
  std::vector<std::uint32_t> next_;    // [queues] place of the next service that starts
  std::vector<std::uint32_t> places_;  // [queues] that are free
  std::vector<std::uint32_t> phase_;   // [chunks] phases that are over
  std::vector<Active> active_;
  std::vector<CustomCollectiveRun> graphs_;  // services of custom collectives that are under way
  std::vector<Early> early_;
  std::vector<Meeting> unsent_;                      // data of steps that have begun
  std::vector<Meeting> words_;                       // of steps that have not
  std::vector<MessageProgram::Receiver> receivers_;  // scratch
  std::vector<std::uint32_t> senders_;               // scratch
};

}  // namespace orrery::collective
