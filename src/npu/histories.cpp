#include "histories.hpp"

#include "execution.hpp"

namespace orrery::npu {

void Histories::send(Execution& npu, Rank to, const pdes::Event& event, const EventPlace& place) {
  const Services& services = npu.context().services;
  services.places->send(services.kernel, to, event, place);
}

/// A message that was there before is taken in an event of its own. What is reduced is so in an event that one an
/// endpoint delay from now schedules.
void Histories::wait(Execution& npu, const StepWait& wait, Time now) {
  EventPlace place = next(now);
  if (wait.is_for_early_message) place = place.next(now, 0);
  const bool is_deferred = wait.reduction > now;
  const pdes::Event event = npu.make_event(is_deferred ? wait.reduction : wait.until, pdes::Stage::client,
                                           npu.npu().lp(), EventKind::wake, wait.node.value(), wait.step);
  if (is_deferred) deferred_.emplace_back(event.order, wait.until);
  keep(event, std::move(place));
  npu.context().services.kernel.schedule(event);
}

/// A message that was there before what asks for it lets that go on in an event of its own, which was posted; one that
/// comes after that at the same time is the event.
Meeting Histories::meet(NodeId node, const pdes::Event& message, Time now) {
  auto found = posted_.extract(node);
  const EventPlace posted = found.empty() ? EventPlace() : std::move(found.mapped());
  const EventPlace its = take(message.order);
  const bool was_there = message.time < now || its.next(now, 0) < posted;
  return {was_there ? posted : its, !was_there};
}

bool Histories::confirm_instant(std::size_t index, const EventPlace& history) {
  if (instants_[index].history != history) return false;
  instants_[index].is_awaited = false;
  return true;
}

void Histories::replace_instant(std::size_t index, const EventPlace& history) {
  instants_.erase(instants_.begin() + static_cast<std::ptrdiff_t>(index));
  // If it would have been the first one pending, others are so now.
  if (!is_in_store_ && !is_expected_) expect_stored_instants();
  if (!history.is_known()) return;
  // The event that has what is pending may be over when the access before ends.
  const bool is_over = store_.is_known() && store_ < history.cause();
  if (!store_.is_known()) store_ = history;
  instants_.push_back({is_over ? history : store_, true, 0, history});
}

/// Puts the ends that the NPU has pending into one event of their own.
void Histories::expect_stored_instants() {
  store_ = {};
  is_expected_ = false;
  for (const Instant& instant : instants_)
    if (instant.is_stored && (!store_.is_known() || instant.own < store_)) store_ = instant.own;
  for (Instant& instant : instants_)
    if (instant.is_stored) instant.history = store_;
}

}  // namespace orrery::npu
