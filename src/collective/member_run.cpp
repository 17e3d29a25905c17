#include "orrery/collective/member_run.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::collective {

MemberRun::MemberRun(std::shared_ptr<const MessageProgram> program, std::uint32_t member, bool rendezvous)
    : program_(std::move(program)),
      member_(member),
      rendezvous_(rendezvous),
      next_(program_->num_queues(), 0),
      slots_(program_->num_queues()),
      phase_(program_->num_chunks(), 0) {
  for (std::uint32_t q = 0; q < slots_.size(); ++q) slots_[q] = program_->slots(q);
}

void CollectiveTransport::note_misfit() { ensure(false, "no more messages of a step than it has"); }

MemberRun::Active& MemberRun::active(std::uint32_t service) {
  const auto found = std::ranges::find(active_, service, &Active::service);
  ensure(found != active_.end(), "a service of a collective goes on that is not under way");
  return *found;
}

void MemberRun::begin(Time now, CollectiveTransport& transport) { start_services(now, transport); }

void MemberRun::begin_beside(std::uint32_t queue, Time now, CollectiveTransport& transport) {
  if (const auto held = find_queue(queue)) --slots_[*held];
  start_services(now, transport);
}

void MemberRun::free_slot(std::uint32_t queue, Time now, CollectiveTransport& transport) {
  const auto held = find_queue(queue);
  if (!held) return;
  ++slots_[*held];
  start_services(now, transport);
}

/// Returns the queue at this place, if a service uses it.
std::optional<std::uint32_t> MemberRun::find_queue(std::uint32_t place) const {
  for (std::uint32_t q = 0; q < slots_.size(); ++q)
    if (program_->place_of_queue(program_->queue(q).front()) == place) return q;
  return {};
}

/// Starts services of each queue in their order, as long as slots are free and the chunk has ended its phases before.
/// What several queues may start at once starts queue by queue, or chunk by chunk.
void MemberRun::start_services(Time now, CollectiveTransport& transport) {
  if (is_starting_) return;
  is_starting_ = true;
  const auto next_of = [this](std::uint32_t q) -> const MessageProgram::Service* {
    if (slots_[q] == 0 || next_[q] == program_->queue(q).size()) return nullptr;
    const MessageProgram::Service& next = program_->services()[program_->queue(q)[next_[q]]];
    return phase_[next.chunk] < next.phase ? nullptr : &next;
  };
  const auto start_next_of = [&](std::uint32_t q) {
    --slots_[q];
    start(program_->queue(q)[next_[q]++], now, transport);
  };
  const auto num_queues = static_cast<std::uint32_t>(next_.size());
  for (bool any = true; any;) {
    any = false;
    if (program_->begins_in_order_of_chunks()) {
      std::uint32_t first = num_queues;
      for (std::uint32_t q = 0; q < num_queues; ++q)
        if (const auto* const next = next_of(q))
          if (first == num_queues || next->chunk < next_of(first)->chunk) first = q;
      any = first < num_queues;
      if (any) start_next_of(first);
      continue;
    }
    for (std::uint32_t q = 0; q < num_queues; ++q)
      for (; next_of(q) != nullptr; any = true) start_next_of(q);
  }
  is_starting_ = false;
}

void MemberRun::start(std::uint32_t service, Time now, CollectiveTransport& transport) {
  if (program_->custom_collective(service) != nullptr)
    custom_runs_.emplace_back(*program_, service, member_);
  else if (program_->sliding_window(service) != nullptr)
    sliding_.push_back({service});
  else
    active_.push_back({service, 0, 0, State::opening, false, Time::zero()});
  const Time opening = program_->opening(service);
  if (opening > Time::zero()) return transport.wake({service, opening_step}, now + opening, false);
  wake({service, opening_step}, now, transport);
}

void MemberRun::wake(StepId id, Time now, CollectiveTransport& transport) {
  if (CustomCollectiveRun* const run = custom_run(id.service)) {
    if (id.step == opening_step)
      begin(*run, now, transport);
    else
      run->wake(id.step, now, transport);
    return finish_custom(*run, now, transport);
  }
  if (Sliding* const here = sliding(id.service)) return wake(*here, id, now, transport);
  Active& here = active(id.service);
  if (here.state == State::receiving) return take_one(here, now, transport);
  if (here.state == State::closing) {
    ++here.step;
    here.state = State::opening;
  }
  proceed(id.service, now, transport);
}

CustomCollectiveRun* MemberRun::custom_run(std::uint32_t service) {
  const auto found = std::ranges::find(custom_runs_, service, &CustomCollectiveRun::service);
  return found == custom_runs_.end() ? nullptr : &*found;
}

/// Gives the run the messages that came before it began.
void MemberRun::begin(CustomCollectiveRun& run, Time now, CollectiveTransport& transport) {
  for (const Early& early : early_)
    if (early.service == run.service()) run.receive(early.step, now, transport);
  std::erase_if(early_, [&](const Early& early) { return early.service == run.service(); });
  run.begin(now, transport);
}

/// Ends the service if all operations of the custom collective are over.
void MemberRun::finish_custom(const CustomCollectiveRun& run, Time now, CollectiveTransport& transport) {
  if (!run.is_done()) return;
  const std::uint32_t service = run.service();
  std::erase_if(custom_runs_, [&](const CustomCollectiveRun& other) { return other.service() == service; });
  end_service(service, now, transport);
}

/// Takes steps until the service waits for something or is over.
void MemberRun::proceed(std::uint32_t service, Time now, CollectiveTransport& transport) {
  for (;;) {
    Active& here = active(service);
    if (here.step == program_->num_steps(service, member_)) return finish(service, now, transport);
    if (!begin_step(here, transport)) return;
    if (here.cost > Time::zero()) {
      here.state = State::closing;
      return transport.wake({service, here.step}, now + here.cost, here.reduces);
    }
    ++here.step;
    here.state = State::opening;
  }
}

/// Sends what the step sends. Returns whether all that it waits for has come already.
bool MemberRun::begin_step(Active& here, CollectiveTransport& transport) {
  const MemberStep& member_step = program_->step(here.service, here.step, member_);
  const Step& step = member_step.step;
  here.cost = member_step.cost + member_step.reduction;
  here.reduces = step.num_reductions > 0 && step.reduced > Bytes(0);
  auto messages = static_cast<std::uint32_t>(step.receives.size());
  if (step.through_switch) {
    messages = 1;
    transport.send_to_switch(
        step.sends, step.bytes, step.through_switch->down, {here.service, here.step},
        member_step.is_clear_to_send ? CollectiveTransport::Payload::clear_to_send : CollectiveTransport::Payload::data,
        program_->services()[here.service].chunk);
  } else {
    if (program_->sends_clears_first()) send_clears(here.service, here.step, step, transport);
    for (std::size_t message = 0; message < step.sends.size(); ++message)
      send_or_wait(here.service, step, message, transport);
    if (!program_->sends_clears_first()) send_clears(here.service, here.step, step, transport);
  }
  const std::uint32_t come = take_early(here.service, here.step);
  if (come > messages) transport.note_misfit();
  here.missing = messages - std::min(come, messages);
  if (step.awaits_delivery) here.missing += static_cast<std::uint32_t>(step.sends.size());
  here.state = State::receiving;
  return here.missing == 0;
}

/// With rendezvous, lets those send from whom the member receives in the step.
void MemberRun::send_clears(std::uint32_t service, std::uint32_t k, const Step& step, CollectiveTransport& transport) {
  if (!rendezvous_) return;
  for (const std::uint32_t from : step.receives)
    transport.send(from, clear_to_send_size(), {service, k}, CollectiveTransport::Payload::clear_to_send, k);
}

/// Sends data now, or with rendezvous when the receiver's clear to send has come.
void MemberRun::send_or_wait(std::uint32_t service, const Step& step, std::size_t message,
                             CollectiveTransport& transport) {
  const Receiver& to = step.sends[message];
  const Rendezvous data{service, to.step, to.member, step.size_of(message), step.awaits_delivery};
  if (rendezvous_) {
    const auto clear =
        std::ranges::find_if(clears_to_send_, [&](const Rendezvous& other) { return is_same(data, other); });
    if (clear == clears_to_send_.end()) return unsent_.push_back(data);
    *clear = clears_to_send_.back();
    clears_to_send_.pop_back();
  }
  send(data, transport);
}

void MemberRun::send(const Rendezvous& data, CollectiveTransport& transport) {
  if (!data.awaits_delivery)
    return transport.send(data.other, data.size, {data.service, data.step}, CollectiveTransport::Payload::data, 0);
  transport.send(data.other, data.size, {data.service, data.step}, CollectiveTransport::Payload::acknowledged_data,
                 active(data.service).step);
}

void MemberRun::receive(std::uint32_t from, StepId id, bool is_clear_to_send, Time now,
                        CollectiveTransport& transport) {
  const std::uint32_t service = id.service;
  const std::uint32_t step = program_->sliding_window(service) ? step_with(from, id, is_clear_to_send) : id.step;
  if (is_clear_to_send) {
    const Rendezvous clear{service, step, from, Bytes(0), false};
    const auto found = std::ranges::find_if(unsent_, [&](const Rendezvous& other) { return is_same(clear, other); });
    if (found == unsent_.end()) return clears_to_send_.push_back(clear);
    const Rendezvous data = *found;
    *found = unsent_.back();
    unsent_.pop_back();
    return send(data, transport);
  }
  if (CustomCollectiveRun* const run = custom_run(service)) {
    run->receive(step, now, transport);
    return finish_custom(*run, now, transport);
  }
  if (Sliding* const here = sliding(service); here != nullptr && step < here->position.sent())
    return take_message(*here, now, transport);
  const auto here = std::ranges::find(active_, service, &Active::service);
  if (here == active_.end() || here->step != step || here->state != State::receiving) {
    const auto known = find_early({service, step});
    if (known != early_.end())
      ++known->count;
    else
      early_.push_back({service, step, 1});
    return;
  }
  take_one(*here, now, transport);
}

/// Counts a message or an acknowledgement that a step waits for.
void MemberRun::take_one(Active& here, Time now, CollectiveTransport& transport) {
  ensure(here.missing > 0, "a step of a collective gets more than it waits for");
  if (--here.missing > 0) return;
  here.state = State::closing;
  if (here.cost > Time::zero()) return transport.wake({here.service, here.step}, now + here.cost, here.reduces);
  wake({here.service, here.step}, now, transport);
}

std::vector<MemberRun::Early>::iterator MemberRun::find_early(StepId id) {
  return std::ranges::find_if(early_, [&](const Early& e) { return e.service == id.service && e.step == id.step; });
}

std::uint32_t MemberRun::take_early(std::uint32_t service, std::uint32_t step) {
  const auto known = find_early({service, step});
  if (known == early_.end()) return 0;
  const std::uint32_t count = known->count;
  *known = early_.back();
  early_.pop_back();
  return count;
}

void MemberRun::finish(std::uint32_t service, Time now, CollectiveTransport& transport) {
  Active& here = active(service);
  here = active_.back();
  active_.pop_back();
  end_service(service, now, transport);
}

void MemberRun::end_service(std::uint32_t service, Time now, CollectiveTransport& transport) {
  ++num_done_;
  last_queue_ = program_->place_of_queue(service);
  ++phase_[program_->services()[service].chunk];
  ++slots_[program_->queue_of(service)];
  start_services(now, transport);
}

void MemberRun::serialize(Archive& archive) {
  archive(num_done_, next_, slots_, phase_, active_, sliding_, early_, unsent_, clears_to_send_);
  std::vector<std::uint32_t> services;
  for (const CustomCollectiveRun& run : custom_runs_) services.push_back(run.service());
  archive(services);
  if (archive.reads())
    for (const std::uint32_t service : services) custom_runs_.emplace_back(*program_, service, member_);
  for (CustomCollectiveRun& run : custom_runs_) archive(run);
}

}  // namespace orrery::collective
