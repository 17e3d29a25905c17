#include "orrery/collective/member_run.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::collective {

MemberRun::MemberRun(std::shared_ptr<const MessageProgram> script, std::uint32_t member, bool rendezvous)
    : script_(std::move(script)),
      member_(member),
      rendezvous_(rendezvous),
      next_(script_->num_queues(), 0),
      places_(script_->num_queues()),
      phase_(script_->num_chunks(), 0) {
  for (std::uint32_t q = 0; q < places_.size(); ++q) places_[q] = script_->places(q);
}

MemberRun::Active& MemberRun::active(std::uint32_t service) {
  const auto found = std::ranges::find(active_, service, &Active::service);
  ensure(found != active_.end(), "a service of a collective goes on that is not under way");
  return *found;
}

void MemberRun::begin(Time now, Hands& hands) { start_what_may(now, hands); }

/// In each queue services start in their order, as long as there are places and the chunk is through what comes before.
void MemberRun::start_what_may(Time now, Hands& hands) {
  if (is_starting_) return;
  is_starting_ = true;
  for (bool any = true; any;) {
    any = false;
    for (std::uint32_t q = 0; q < next_.size(); ++q) {
      while (places_[q] > 0 && next_[q] < script_->queue(q).size()) {
        const std::uint32_t service = script_->queue(q)[next_[q]];
        const MessageProgram::Service& what = script_->services()[service];
        if (phase_[what.chunk] < what.phase) break;
        --places_[q];
        ++next_[q];
        any = true;
        start(service, now, hands);
      }
    }
  }
  is_starting_ = false;
}

void MemberRun::start(std::uint32_t service, Time now, Hands& hands) {
  const bool is_graph = script_->procedure(service) != nullptr;
  if (is_graph)
    graphs_.emplace_back(*script_, service, member_);
  else
    active_.push_back({service, 0, 0, State::opening, Time::zero()});
  const Time opening = script_->opening(service);
  if (opening > Time::zero()) return hands.wake({service, opening_step}, now + opening);
  wake({service, opening_step}, now, hands);
}

void MemberRun::wake(StepId id, Time now, Hands& hands) {
  if (CustomCollectiveRun* const graph = this->graph(id.service)) {
    if (id.step == opening_step)
      begin(*graph, now, hands);
    else
      graph->wake(id.step, now, hands);
    return finish_graph(*graph, now, hands);
  }
  Active& here = active(id.service);
  if (here.state == State::receiving) return one_less(here, now, hands);
  if (here.state == State::closing) {
    ++here.step;
    here.state = State::opening;
  }
  proceed(id.service, now, hands);
}

CustomCollectiveRun* MemberRun::graph(std::uint32_t service) {
  const auto found = std::ranges::find(graphs_, service, &CustomCollectiveRun::service);
  return found == graphs_.end() ? nullptr : &*found;
}

/// What has come before is there when it begins.
void MemberRun::begin(CustomCollectiveRun& graph, Time now, Hands& hands) {
  for (const Early& early : early_)
    if (early.service == graph.service()) graph.receive(early.step, now, hands);
  std::erase_if(early_, [&](const Early& early) { return early.service == graph.service(); });
  graph.begin(now, hands);
}

void MemberRun::finish_graph(const CustomCollectiveRun& graph, Time now, Hands& hands) {
  if (!graph.is_done()) return;
  const std::uint32_t service = graph.service();
  std::erase_if(graphs_, [&](const CustomCollectiveRun& other) { return other.service() == service; });
  end_service(service, now, hands);
}

void MemberRun::proceed(std::uint32_t service, Time now, Hands& hands) {
  for (;;) {
    Active& here = active(service);
    if (here.step == script_->num_steps(service, member_)) return finish(service, now, hands);
    if (!begin_step(here, hands)) return;
    if (here.cost > Time::zero()) {
      here.state = State::closing;
      return hands.wake({service, here.step}, now + here.cost);
    }
    ++here.step;
    here.state = State::opening;
  }
}

/// Sends what the step sends. True if all that it waits for is there already.
bool MemberRun::begin_step(Active& here, Hands& hands) {
  const MessageProgram::Move move = script_->move(here.service, here.step, member_);
  here.cost = move.cost + move.reduction;
  script_->receivers(here.service, here.step, member_, receivers_);
  if (move.from_switch) {
    hands.send_to_switch(receivers_, move.message, *move.from_switch, {here.service, here.step},
                         move.is_word ? Hands::Payload::clear_to_send : Hands::Payload::data);
  } else {
    for (const MessageProgram::Receiver& to : receivers_) send_or_meet(here, to, move, hands);
    if (rendezvous_ && move.receives > 0) {
      script_->senders(here.service, here.step, member_, senders_);
      for (const std::uint32_t from : senders_)
        hands.send(from, clear_to_send_size(), {here.service, here.step}, Hands::Payload::clear_to_send, here.step);
    }
  }
  const std::uint32_t come = take_early(here.service, here.step);
  ensure(come <= move.receives, "more messages of a step than it has");
  here.missing = move.receives - come + (move.sends_one_by_one ? 1 : 0);
  here.state = State::receiving;
  return here.missing == 0;
}

void MemberRun::send_or_meet(const Active& here, const MessageProgram::Receiver& to, const MessageProgram::Move& move,
                             Hands& hands) {
  const Meeting meeting{here.service, to.step, to.member, move.message, move.sends_one_by_one};
  if (rendezvous_) {
    const auto word = std::ranges::find_if(words_, [&](const Meeting& other) { return is_same(meeting, other); });
    if (word == words_.end()) return unsent_.push_back(meeting);
    *word = words_.back();
    words_.pop_back();
  }
  send(meeting, hands);
}

void MemberRun::send(const Meeting& data, Hands& hands) {
  hands.send(data.other, data.size, {data.service, data.step},
             data.wants_receipt ? Hands::Payload::acknowledged_data : Hands::Payload::data, data.step);
}

void MemberRun::receive(std::uint32_t from, StepId id, bool is_word, Time now, Hands& hands) {
  const auto [service, step] = id;
  if (is_word) {
    const Meeting word{service, step, from, Bytes(0), false};
    const auto data = std::ranges::find_if(unsent_, [&](const Meeting& other) { return is_same(word, other); });
    if (data == unsent_.end()) return words_.push_back(word);
    const Meeting leaves = *data;
    *data = unsent_.back();
    unsent_.pop_back();
    return send(leaves, hands);
  }
  if (CustomCollectiveRun* const graph = this->graph(service)) {
    graph->receive(step, now, hands);
    return finish_graph(*graph, now, hands);
  }
  const auto here = std::ranges::find(active_, service, &Active::service);
  if (here == active_.end() || here->step != step || here->state != State::receiving) {
    const auto known = find_early(id);
    if (known != early_.end())
      ++known->count;
    else
      early_.push_back({service, step, 1});
    return;
  }
  one_less(*here, now, hands);
}

/// A message or a receipt that a step waits for is there.
void MemberRun::one_less(Active& here, Time now, Hands& hands) {
  ensure(here.missing > 0, "a step of a collective gets more than it waits for");
  if (--here.missing > 0) return;
  here.state = State::closing;
  if (here.cost > Time::zero()) return hands.wake({here.service, here.step}, now + here.cost);
  wake({here.service, here.step}, now, hands);
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

void MemberRun::finish(std::uint32_t service, Time now, Hands& hands) {
  Active& here = active(service);
  here = active_.back();
  active_.pop_back();
  end_service(service, now, hands);
}

void MemberRun::end_service(std::uint32_t service, Time now, Hands& hands) {
  ++num_done_;
  ++phase_[script_->services()[service].chunk];
  ++places_[script_->queue_of(service)];
  start_what_may(now, hands);
}

}  // namespace orrery::collective
