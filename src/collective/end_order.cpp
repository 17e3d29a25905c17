#include "orrery/collective/end_order.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <queue>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/collective/member_run.hpp"

namespace orrery::collective {
namespace {

/// Sends the messages of one collective, in the order of their histories.
class MessageQueue {
 public:
  MessageQueue(std::span<const std::shared_ptr<const MessageProgram>> programs, const MessageTimes& times)
      : times_(times),
        ends_{std::vector<Time>(programs.size()), std::vector<EventPlace>(programs.size()),
              std::vector<std::uint32_t>(programs.size())} {
    for (std::uint32_t member = 0; member < programs.size(); ++member)
      runs_.emplace_back(programs[member], member, times.rendezvous);
  }

  std::optional<MemberEnds> run() {
    for (std::uint32_t member = 0; member < runs_.size(); ++member)
      events_.push({.time = times_.arrivals[member], .history = times_.histories[member].cause(), .member = member});
    while (!events_.empty() && programs_fit_) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
    }
    if (!programs_fit_ || !std::ranges::all_of(runs_, &MemberRun::is_done)) return {};
    return std::move(ends_);
  }

 private:
  enum class Kind : std::uint8_t { begin, departure, message, clear_to_send, taking, stored };
  struct Event {
    Time time;
    EventPlace history;
    Kind kind = Kind::begin;
    std::uint32_t member = 0;
    std::uint32_t from = 0;
    StepId step = {};
    Time takes = {};       ///< time from a departure to the message, or from a taking until the step goes on
    bool reduces = false;  ///< whether a taking reduces

    friend bool operator>(const Event& a, const Event& b) {
      return a.time != b.time ? a.time > b.time : a.history > b.history;
    }
  };

  /// A step that goes on at a time. If it reduces first, it has a reduction pending for that time, which may be now.
  struct Stored {
    StepId step;
    Time until;
    bool reduces = false;
  };

  /// What a member asks for while it handles an event.
  class Transport final : public CollectiveTransport {
   public:
    /// `cause`: of the event at hand.
    Transport(MessageQueue& queue, std::uint32_t member, Time now, Kind cause)
        : queue_(queue), member_(member), now_(now), cause_(cause) {}

    void send(std::uint32_t to, Bytes size, StepId step, Payload payload, std::uint32_t /*own_step*/) override {
      const Kind kind = payload == Payload::clear_to_send ? Kind::clear_to_send : Kind::message;
      const Time takes = queue_.times_.delay(member_, to, size);
      Event message{.time = now_ + takes, .history = {}, .kind = kind, .member = to, .from = member_, .step = step};
      if (kind == Kind::clear_to_send || !queue_.times_.rendezvous || cause_ == Kind::clear_to_send)
        return queue_.push(std::move(message));
      // Data that have been cleared before leave in an event of their own, which is scheduled only now.
      message.time = now_;
      message.kind = Kind::departure;
      message.takes = takes;
      queue_.push(std::move(message));
    }
    void send_to_switch(std::span<const MessageProgram::Receiver>, Bytes, Bytes, StepId, Payload,
                        std::uint32_t) override {
      ensure(false, "a message through a switch, in an order of events");
    }
    void wake(StepId step, Time time, bool reduces) override {
      // A message that was there before is taken in an event of its own, which is scheduled only now.
      const bool is_there = (cause_ == Kind::begin || cause_ == Kind::stored) && step.step != opening_step;
      if (!is_there) return queue_.wake(member_, {step, time, reduces}, now_);
      queue_.push({.time = now_,
                   .history = {},
                   .kind = Kind::taking,
                   .member = member_,
                   .step = step,
                   .takes = time - now_,
                   .reduces = reduces});
    }
    void note_misfit() override { queue_.programs_fit_ = false; }

   private:
    MessageQueue& queue_;
    std::uint32_t member_;
    Time now_;
    Kind cause_;
  };

  /// Schedules an event because of the one at hand.
  void push(Event event) {
    event.history = next_;
    next_ = next_.beside();
    events_.push(std::move(event));
  }

  /// Lets a step go on. One that reduces does so in an event that one an endpoint delay from now schedules.
  void wake(std::uint32_t member, Stored what, Time now) {
    const Time middle = now + times_.endpoint_delay;
    what.reduces = what.reduces && middle > now;
    store(member, what.reduces ? middle : what.until, what);
  }

  /// Adds what a member has pending for itself. All that it has for one time is one event.
  void store(std::uint32_t member, Time time, const Stored& what) {
    const auto [place, is_new] = stored_.try_emplace({member, time});
    place->second.push_back(what);
    if (is_new) push({.time = time, .history = {}, .kind = Kind::stored, .member = member});
  }

  void handle(const Event& event) {
    next_ = event.kind == Kind::begin ? times_.histories[event.member] : event.history.next(event.time, 0);
    if (event.kind == Kind::departure) {
      Event message = event;
      message.time = event.time + event.takes;
      message.kind = Kind::message;
      return push(std::move(message));
    }
    if (event.kind == Kind::taking)
      return wake(event.member, {event.step, event.time + event.takes, event.reduces}, event.time);
    MemberRun& run = runs_[event.member];
    Transport transport(*this, event.member, event.time, event.kind);
    const bool was_done = run.is_done();
    switch (event.kind) {
      case Kind::begin:
        begin(event, transport);
        break;
      case Kind::message:
      case Kind::clear_to_send:
        run.receive(event.from, event.step, event.kind == Kind::clear_to_send, event.time, transport);
        break;
      case Kind::stored:
        take_stored(event.member, event.time, transport);
        break;
      case Kind::departure:
      case Kind::taking:
        break;  // no member acts
    }
    if (!run.is_done() || was_done) return;
    ends_.times[event.member] = event.time;
    ends_.histories[event.member] = event.history;
    ends_.queues[event.member] = run.last_queue();
  }

  void begin(const Event& event, Transport& transport) {
    MemberRun& run = runs_[event.member];
    if (times_.held.empty() || !times_.held[event.member].queue) return run.begin(event.time, transport);
    const HeldQueue& held = times_.held[event.member];
    run.begin_beside(*held.queue, event.time, transport);
    next_ = held.freed;
    run.free_slot(*held.queue, event.time, transport);
  }

  void take_stored(std::uint32_t member, Time now, Transport& transport) {
    const auto found = stored_.find({member, now});
    while (!found->second.empty()) {
      const Stored what = found->second.front();
      found->second.pop_front();
      if (what.reduces)
        store(member, what.until, {what.step, what.until});
      else
        runs_[member].wake(what.step, now, transport);
    }
    stored_.erase(found);
  }

  const MessageTimes& times_;
  std::vector<MemberRun> runs_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  EventPlace next_;  // of what the event at hand schedules next
  std::map<std::pair<std::uint32_t, Time>, std::deque<Stored>> stored_;
  MemberEnds ends_;
  bool programs_fit_ = true;  // where members disagree, messages may go to steps that expect others
};

/// Returns the steps that members take, as far as they are no more than `most`; more than that if some steps are none
/// of plain messages.
std::uint64_t count_steps(const MessageProgram& program, std::size_t num_members, std::uint64_t most) {
  std::uint64_t count = 0;
  for (std::uint32_t service = 0; service < program.services().size() && count <= most; ++service) {
    if (program.custom_collective(service) != nullptr) return most + 1;
    for (std::uint32_t member = 0; member < num_members && count <= most; ++member) {
      const std::uint32_t steps = program.num_steps(service, member);
      if (steps > 0 && program.step(service, 0, member).step.through_switch) return most + 1;
      count += steps;
    }
  }
  return count;
}

}  // namespace

std::optional<MemberEnds> member_ends(std::span<const std::shared_ptr<const MessageProgram>> programs,
                                      const MessageTimes& times, std::uint64_t most_messages) {
  if (count_steps(*programs.front(), programs.size(), most_messages) > most_messages) return {};
  return MessageQueue(programs, times).run();
}

}  // namespace orrery::collective
