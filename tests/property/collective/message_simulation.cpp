#include "message_simulation.hpp"

#include <algorithm>
#include <stdexcept>

namespace orrery::collective::test {

MessageSimulation::MessageSimulation(const Scenario& scenario, const Predecessors* fixed)
    : scenario_(scenario),
      fixed_(fixed),
      chunks_(scenario.num_chunks),
      phases_(static_cast<std::uint32_t>(scenario.phases.size())),
      recorded_(chunks_, std::vector<std::optional<std::pair<std::uint32_t, std::uint32_t>>>(phases_)) {
  std::uint32_t num_queues = 0;
  for (const PhaseOfChunk& phase : scenario.phases) {
    num_queues = std::max(num_queues, phase.queue + 1);
    cells_.emplace_back(scenario.num_members);
    for (std::uint32_t l = 0; l < phase.groups.size(); ++l)
      for (std::uint32_t i = 0; i < phase.groups[l].size(); ++i) cells_.back()[phase.groups[l][i]] = {l, i};
  }
  Queue queue;
  queue.slots.assign(scenario.in_service, std::nullopt);
  queues_.assign(scenario.num_members, std::vector<Queue>(num_queues, queue));
}

std::vector<Ps> MessageSimulation::run(const std::vector<Ps>& arrivals) {
  progress_.resize(std::size_t{scenario_.num_members} * chunks_ * phases_);
  for (std::size_t t = 0; t < progress_.size(); ++t) {
    const std::size_t num = scenario_.phases[t % phases_].exchanges.size();
    progress_[t].begun.resize(num);
    progress_[t].received.resize(num);
    progress_[t].clears.resize(num);
  }
  completions_.assign(arrivals.begin(), arrivals.end());
  arrived_.assign(scenario_.num_members, false);
  for (std::uint32_t m = 0; m < scenario_.num_members; ++m)
    push({arrivals[m], sequence_++, What::arrive, m, 0, 0, 0, 0});
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    handle(event);
  }
  for (const Progress& task : progress_)
    if (!task.finished) throw std::logic_error("the message simulation got stuck");
  return completions_;
}

void MessageSimulation::handle(const Event& event) {
  switch (event.what) {
    case What::arrive:
      arrived_[event.member] = true;
      for (std::uint32_t c = 0; c < chunks_; ++c) ready(event.member, c, 0, event.at);
      return;
    case What::begin:
      begin(event);
      return;
    case What::data:
      ++progress(event).received[event.exchange];
      complete_if_all_there(event);
      return;
    case What::clear_to_send:
      if (progress(event).begun[event.exchange])
        send(event, event.peer);
      else
        progress(event).clears[event.exchange].push_back(event.peer);
      return;
    case What::finish:
      finish(event);
      return;
  }
}

void MessageSimulation::ready(std::uint32_t member, std::uint32_t chunk, std::uint32_t phase, Ps now) {
  if (fixed_ != nullptr) {
    try_start(member, chunk, phase, now);
    return;
  }
  const std::uint32_t queue = scenario_.phases[phase].queue;
  queues_[member][queue].waiting.emplace_back(chunk, phase);
  serve(member, queue, now);
}

void MessageSimulation::serve(std::uint32_t member, std::uint32_t queue, Ps now) {
  Queue& own = queues_[member][queue];
  while (!own.waiting.empty() && !own.slots.empty()) {
    const auto [chunk, phase] = own.waiting.front();
    own.waiting.pop_front();
    if (member == 0) recorded_[chunk][phase] = own.slots.front();
    own.slots.pop_front();
    start(member, chunk, phase, now);
  }
}

/// Starts a phase in the fixed order: the chunk must have ended its previous phase, and the slot must be free.
void MessageSimulation::try_start(std::uint32_t member, std::uint32_t chunk, std::uint32_t phase, Ps now) {
  if (progress_[(member * chunks_ + chunk) * phases_ + phase].started || !arrived_[member]) return;
  if (phase > 0 && !finished(member, chunk, phase - 1)) return;
  const auto& before = (*fixed_)[chunk][phase];
  if (before && !finished(member, before->first, before->second)) return;
  start(member, chunk, phase, now);
}

void MessageSimulation::start(std::uint32_t member, std::uint32_t chunk, std::uint32_t phase, Ps now) {
  Event event{now + scenario_.endpoint_delay, sequence_++, What::begin, member, chunk, phase, 0, 0};
  progress(event).started = true;
  push(event);
}

std::vector<std::uint32_t> MessageSimulation::peers(const Event& event, bool receivers) const {
  const PhaseOfChunk& phase = scenario_.phases[event.phase];
  const Exchange& exchange = phase.exchanges[event.exchange];
  const auto [group, position] = cells_[event.phase][event.member];
  const auto size = static_cast<std::uint32_t>(phase.groups[group].size());
  std::vector<std::uint32_t> result;
  for (const std::uint32_t d : exchange.distances) {
    const std::uint32_t other =
        exchange.by_xor ? position ^ d : (receivers ? position + d : position + size - d) % size;
    result.push_back(phase.groups[group][other]);
  }
  return result;
}

void MessageSimulation::begin(const Event& event) {
  Progress& task = progress(event);
  task.begun[event.exchange] = true;
  if (!scenario_.rendezvous) {
    for (const std::uint32_t receiver : peers(event, true)) send(event, receiver);
  } else {
    for (const std::uint32_t receiver : task.clears[event.exchange]) send(event, receiver);
    for (const std::uint32_t sender : peers(event, false)) {
      Event clear = event;
      clear.at += scenario_.link({event.member, sender, sender, event.member, event.phase, event.exchange},
                                 scenario_.control_bytes);
      clear.order = sequence_++;
      clear.what = What::clear_to_send;
      clear.member = sender;
      clear.peer = event.member;
      push(clear);
    }
  }
  complete_if_all_there(event);
}

void MessageSimulation::send(const Event& event, std::uint32_t receiver) {
  Event data = event;
  const std::uint64_t bytes = scenario_.phases[event.phase].exchanges[event.exchange].bytes;
  data.at += scenario_.link({event.member, receiver, event.member, receiver, event.phase, event.exchange}, bytes);
  data.order = sequence_++;
  data.what = What::data;
  data.member = receiver;
  push(data);
}

void MessageSimulation::complete_if_all_there(const Event& event) {
  const Progress& task = progress(event);
  const std::vector<Exchange>& exchanges = scenario_.phases[event.phase].exchanges;
  if (!task.begun[event.exchange] || task.received[event.exchange] < exchanges[event.exchange].distances.size()) return;
  Event next = event;
  next.at += scenario_.endpoint_delay + exchanges[event.exchange].cost;
  next.order = sequence_++;
  next.what = event.exchange + 1 < exchanges.size() ? What::begin : What::finish;
  ++next.exchange;
  push(next);
}

void MessageSimulation::finish(const Event& event) {
  progress(event).finished = true;
  completions_[event.member] = std::max(completions_[event.member], event.at);
  const std::uint32_t queue = scenario_.phases[event.phase].queue;
  if (fixed_ == nullptr) queues_[event.member][queue].slots.emplace_back(std::pair(event.chunk, event.phase));
  if (event.phase + 1 < phases_) ready(event.member, event.chunk, event.phase + 1, event.at);
  if (fixed_ == nullptr) {
    serve(event.member, queue, event.at);
    return;
  }
  for (std::uint32_t c = 0; c < chunks_; ++c)
    for (std::uint32_t p = 0; p < phases_; ++p)
      if ((*fixed_)[c][p] == std::pair(event.chunk, event.phase)) try_start(event.member, c, p, event.at);
}

}  // namespace orrery::collective::test
