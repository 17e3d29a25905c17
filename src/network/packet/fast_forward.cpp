#include "fast_forward.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace orrery::network {
namespace {

/// Values of states that may be visited for each event, and for each packet that was skipped: this bounds what looking
/// for repetitions costs.
constexpr std::uint64_t visits_per_event = 4;
/// What costs about as much as so many values: looking at a pending event, putting it in order, and the path of a flow.
constexpr std::uint64_t visits_per_pending_event = 2, visits_per_ordered_event = 20, visits_per_flow = 100;
/// A flow with fewer packets left is no anchor.
constexpr std::uint64_t least_packets = 32;
/// A part does not rest for fewer periods.
constexpr std::uint64_t least_periods = 2;

}  // namespace

bool FastForward::is_possible(const PacketDevices::System& system, const PacketDevices::Part& part) {
  const PacketRules& rules = system.rules;
  const bool has_late_failures =
      std::ranges::any_of(system.failures, [](const LinkFailure& failure) { return failure.time > Time::zero(); });
  return rules.fast_forward && rules.transport == PacketTransport::roce && rules.routing == PacketRouting::flow_hash &&
         rules.loss == PacketLoss::go_back_n && !rules.uses_credits && !rules.control->uses_telemetry &&
         !has_late_failures && !part.in_scheduling_order && part.recording == PacketRecording{};
}

// ---- Parts ----

void FastForward::begin(const Flow& flow) {
  for (const std::uint32_t part : parts_.add(flow)) dissolve(part);
}

void FastForward::end(const Flow& flow) {
  if (const std::uint32_t part = parts_.of_flow(flow.slot); part != none) dissolve(part);
}

void FastForward::dissolve(std::uint32_t number) {
  if (watches_[number].rest != 0) wake(number, at_hand_);
  watches_[number] = {};
  parts_.dissolve(number);
}

void FastForward::divide() {
  wants_division_ = false;
  num_visited_ += devices_.flows_.size();
  for (const std::uint32_t number : parts_.divide()) {
    num_visited_ += parts_[number].flows.size() * visits_per_flow + parts_[number].ports.size();
    if (number >= watches_.size()) watches_.resize(number + 1);
    if (parts_[number].is_here) choose_anchor(number);
  }
}

/// Takes the flow with the most bytes left.
void FastForward::choose_anchor(std::uint32_t number) {
  const auto bytes_left = [&](std::uint32_t slot) { return devices_.flows_[slot].bytes - devices_.flows_[slot].next; };
  const std::uint32_t most = *std::ranges::max_element(parts_[number].flows, {}, bytes_left);
  num_visited_ += parts_[number].flows.size();
  watches_[number].anchor = has_many(devices_.flows_[most]) ? most : no_slot;
  watches_[number].has_state = false;
}

bool FastForward::has_many(const Flow& flow) const {
  return flow.bytes - flow.next >= least_packets * devices_.system_.rules.payload;
}

// ---- Events ----

/// Handles what comes before an event at its time, and wakes up the part to which the event comes.
void FastForward::wake_for(const pdes::Event& event) {
  while (!late_.empty() && before(late_.top(), event)) handle_late(late_.pop());
  if (const std::uint32_t part = part_of(event); part != none && watches_[part].rest != 0) wake(part, event);
}

void FastForward::note_packet(std::size_t port, const Packet& packet) {
  const std::uint32_t part = parts_.of_port(port);
  if (part == none || devices_.is_here(packet.is_data() ? packet.source : packet.destination)) return;
  if (watches_[part].rest != 0) wake(part, at_hand_);
  watches_[part].has_state = false;
}

void FastForward::handle_late(const pdes::Event& event) {
  ++num_events_;
  at_hand_ = event;
  devices_.handle(event);
}

void FastForward::go_on(const pdes::Event& event) {
  const bool is_its = event.node < watches_.size() && event.detail != 0 && watches_[event.node].rest == event.detail;
  if (is_its) wake(event.node, event);
}

/// Wakes up all parts and brings them to a time at which the kernel has stopped.
void FastForward::catch_up(Time stopped_at) {
  pdes::Event last;
  last.time = stopped_at;
  last.order = std::numeric_limits<std::uint64_t>::max();
  for (std::uint32_t number = 0; number < watches_.size(); ++number)
    if (watches_[number].rest != 0) wake(number, last);
}

bool FastForward::keeps(const pdes::Event& event) {
  const bool is_kept = event.time <= catching_up_->until.time;
  if (is_kept) catching_up_->events.push(event);
  return is_kept;
}

/// Returns the part to which an event comes from outside; none if it is not known or does not matter.
std::uint32_t FastForward::part_of(const pdes::Event& event) const {
  switch (event.kind) {
    case PacketDevices::arrival:
    case PacketDevices::transmission_end:
    case PacketDevices::wake: {
      const std::uint32_t node = event.target.value() - devices_.part_.first_process.value();
      return parts_.of_port(devices_.nodes_[node].first_port + event.reserved);
    }
    case PacketDevices::timer:
      return parts_.of_flow(event.node);
    default:
      return none;
  }
}

/// Returns whether an event of a node comes again a period later.
bool FastForward::belongs(const pdes::Event& event, std::uint32_t number) const {
  return event.target >= devices_.part_.first_process && event.kind != PacketDevices::timer && part_of(event) == number;
}

/// Returns the events that wait for nodes of a part, in their order, but for timers.
std::vector<pdes::Event> FastForward::events_of(std::uint32_t number) {
  std::vector<pdes::Event> events;
  devices_.part_.kernel.visit_server_events([&](const pdes::Event& event) {
    num_visited_ += visits_per_pending_event;
    if (belongs(event, number)) events.push_back(event);
  });
  std::ranges::sort(events, pdes::before);
  num_visited_ += events.size() * visits_per_ordered_event;
  return events;
}

// ---- Repetition ----

bool FastForward::may_look() const { return num_visited_ <= visits_per_event * (num_events_ + num_skipped_); }

void FastForward::note_sent(const Flow& flow) {
  if (catching_up_ != nullptr) return;
  const std::uint32_t number = parts_.of_flow(flow.slot);
  if (number == none) {
    wants_division_ = wants_division_ || has_many(flow);
    return;
  }
  Watch& watch = watches_[number];
  if (watch.anchor != flow.slot || std::exchange(watch.has_sent, true)) return;
  to_look_.push_back(number);
}

/// Ends a time at which there is something to do.
void FastForward::look_around() {
  while (!late_.empty()) handle_late(late_.pop());
  if (wants_division_ && may_look()) divide();
  for (const std::uint32_t number : to_look_) {
    if (!std::exchange(watches_[number].has_sent, false)) continue;  // the part has been dissolved
    if (may_look()) look(number);
  }
  to_look_.clear();
}

void FastForward::look(std::uint32_t number) {
  Watch& watch = watches_[number];
  if (!has_many(devices_.flows_[watch.anchor])) choose_anchor(number);
  if (watch.anchor == no_slot) return;
  if (!watch.has_state) return record(number);
  const std::size_t num_equal = states_.num_equal(parts_[number], watch.state);
  num_visited_ += std::min(num_equal, watch.state.values.size());
  if (num_equal == PortStates::npos && rest(number)) return;
  if (++watch.num_compared < watch.most_compared) return;
  watch.most_compared *= 2;
  record(number);
}

void FastForward::record(std::uint32_t number) {
  Watch& watch = watches_[number];
  const bool says_something = states_.record(parts_[number], events_of(number), watch.state);
  num_visited_ += watch.state.values.size() + watch.state.totals.size();
  if (!says_something) watch.state.values.assign(1, ~std::uint64_t{0});  // no state is equal
  watch.has_state = true;
  watch.num_compared = 0;
}

/// Brings a part to rest if its state, with its events, is the recorded one and may be repeated. Returns whether it is.
bool FastForward::rest(std::uint32_t number) {
  Watch& watch = watches_[number];
  const NetworkPart& part = parts_[number];
  num_visited_ += watch.state.values.size();
  if (!states_.is_equal(part, events_of(number), watch.state)) return false;
  const Time now = devices_.now(), period = now - watch.state.time;
  // Times beyond the range end a run with a message of their own.
  const std::int64_t within_range = (Time::from_ps(Time::max().ps() / 2) - now).ps() / period.ps();
  watch.most_periods = std::min(states_.most_repetitions(part, watch.state),
                                static_cast<std::uint64_t>(std::max<std::int64_t>(within_range, 0)));
  if (watch.most_periods < least_periods) return false;
  pdes::Scheduler& kernel = devices_.part_.kernel;
  watch.events = kernel.withdraw([&](const pdes::Event& event) { return belongs(event, number); },
                                 [this](Time stopped_at) { catch_up(stopped_at); });
  if (watch.events.empty()) return false;
  watch.rest = ++num_rests_;
  ++num_resting_;
  watch.rests_since = now;
  const std::uint32_t node = devices_.flows_[watch.anchor].id.source;
  pdes::Event woken =
      devices_.event(node, node, now + period * static_cast<std::int64_t>(watch.most_periods) + Time::from_ps(1));
  woken.kind = PacketDevices::going_on;
  woken.node = number;
  woken.detail = watch.rest;
  kernel.send(devices_.part_.here, woken);
  return true;
}

/// Brings a part to what it is directly before an event, and goes on with it from there.
void FastForward::wake(std::uint32_t number, const pdes::Event& until) {
  Watch& watch = watches_[number];
  watch.rest = 0;
  watch.has_state = false;
  --num_resting_;
  Time now = watch.rests_since;
  const Time period = now - watch.state.time;
  const std::int64_t num_before = std::max<std::int64_t>((until.time - now).ps() - 1, 0) / period.ps();
  const std::uint64_t num_periods = std::min(watch.most_periods, static_cast<std::uint64_t>(num_before));
  CatchUp work{.events = {}, .until = until};
  devices_.fast_forward_time_ = &now;
  const std::uint64_t num_packets_before = num_packets(number);
  states_.advance(parts_[number], watch.events, watch.state, now, num_periods);
  num_skipped_ += num_packets(number) - num_packets_before;
  num_visited_ += watch.state.values.size() + watch.state.totals.size();
  for (pdes::Event event : std::exchange(watch.events, {})) {
    event.time += period * static_cast<std::int64_t>(num_periods);
    work.events.push(event);
  }
  handle_events(work, now);
  devices_.fast_forward_time_ = nullptr;
  while (!work.events.empty()) {
    const pdes::Event event = work.events.pop();
    if (event.time == until.time)
      late_.push(event);
    else
      devices_.part_.kernel.send(devices_.part_.here, event);
  }
}

/// Handles the events of a part that come before the one for which it catches up.
void FastForward::handle_events(CatchUp& work, Time& now) {
  catching_up_ = &work;
  while (!work.events.empty() && before(work.events.top(), work.until)) {
    const pdes::Event event = work.events.pop();
    now = event.time;
    ++num_events_;
    devices_.handle(event);
  }
  catching_up_ = nullptr;
}

/// Returns how many packets the ports of a part have sent.
std::uint64_t FastForward::num_packets(std::uint32_t number) const {
  std::uint64_t sum = 0;
  for (const std::uint32_t index : parts_[number].ports) sum += devices_.ports_[index].done.packets;
  return sum;
}

}  // namespace orrery::network
