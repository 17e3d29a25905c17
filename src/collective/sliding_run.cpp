// The part of MemberRun that carries out direct with a sliding window.
#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/collective/member_run.hpp"

namespace orrery::collective {

MemberRun::Sliding* MemberRun::sliding(std::uint32_t service) {
  const auto found = std::ranges::find(sliding_, service, &Sliding::service);
  return found == sliding_.end() ? nullptr : &*found;
}

/// Returns the step in which this member and another one exchange a message. For a clear to send it is the step that
/// this member takes for the other one's. Members that go round the other way number their steps differently.
std::uint32_t MemberRun::step_with(std::uint32_t other, StepId id, bool is_clear_to_send) const {
  const SlidingWindow& window = *program_->sliding_window(id.service);
  const std::uint32_t half = window.first_half > 0 ? window.first_half : window.num_messages;
  const std::uint32_t first = id.step / half * half;
  for (std::uint32_t i = 0; i < half; ++i) {  // the first one fits if both go round the same way
    const std::uint32_t k = first + (id.step - first + i) % half;
    const Step& step = program_->step(id.service, k, member_).step;
    if (!is_clear_to_send && std::ranges::find(step.receives, other) != step.receives.end()) return k;
    if (!is_clear_to_send) continue;
    const auto to = std::ranges::find(step.sends, other, &Receiver::member);
    if (to != step.sends.end()) return to->step;
  }
  return id.step;
}

/// Takes the first credits, or one that comes back now.
void MemberRun::wake(Sliding& here, StepId id, Time now, CollectiveTransport& transport) {
  // A credit that takes no time comes back after all others of this moment.
  const bool is_at_once = id.step != opening_step && delay_of_credit(here, id.step) == Time::zero();
  if (now > here.late_since || is_at_once) here.position.count_late();
  take_credits(here, id.step == opening_step ? program_->sliding_window(here.service)->window : 1, now, transport);
}

/// Takes a message for which the member has sent its own of the same step. Its credit comes back when it is reduced.
void MemberRun::take_message(Sliding& here, Time now, CollectiveTransport& transport) {
  if (now > here.late_since) here.position.count_late();
  reduce(here, here.position.receive(), now, transport);
}

/// Takes in the message with this number.
void MemberRun::reduce(const Sliding& here, std::uint32_t number, Time now, CollectiveTransport& transport) {
  const bool reduces = program_->sliding_window(here.service)->reduces_message(number);
  transport.wake({here.service, number}, now + delay_of_credit(here, number), reduces);
}

/// Returns the time from a message of the member to the return of its credit.
Time MemberRun::delay_of_credit(const Sliding& here, std::uint32_t number) const {
  const MemberStep& step = program_->step(here.service, 0, member_);
  return program_->sliding_window(here.service)->reduces_message(number) ? step.cost + step.reduction : step.cost;
}

/// Sends the messages that so many credits allow, and ends the service with the last credit.
void MemberRun::take_credits(Sliding& here, std::uint32_t count, Time now, CollectiveTransport& transport) {
  const SlidingWindow& window = *program_->sliding_window(here.service);
  const std::uint32_t first = here.position.sent();
  for (; count > 0; --count) here.position.take_credit(window);
  begin_messages(here, first, now, transport);
  if (!here.position.is_over(window)) return;
  const std::uint32_t service = here.service;
  std::erase_if(sliding_, [&](const Sliding& other) { return other.service == service; });
  end_service(service, now, transport);
}

/// Begins the steps from `first` on: lets others send, sends its own data, and takes what has come already.
void MemberRun::begin_messages(Sliding& here, std::uint32_t first, Time now, CollectiveTransport& transport) {
  for (std::uint32_t k = first; rendezvous_ && k < here.position.sent(); ++k)
    send_clears(here.service, k, program_->step(here.service, k, member_).step, transport);
  for (std::uint32_t k = first; k < here.position.sent(); ++k) {
    const Step& step = program_->step(here.service, k, member_).step;
    for (std::size_t message = 0; message < step.sends.size(); ++message)
      send_or_wait(here.service, step, message, transport);
  }
  for (std::uint32_t k = first; k < here.position.sent(); ++k)
    for (std::uint32_t come = take_early(here.service, k); come > 0; --come) {
      // What was there before is taken after all credits of this moment.
      here.late_since = now;
      reduce(here, here.position.receive_late(), now, transport);
    }
}

}  // namespace orrery::collective
