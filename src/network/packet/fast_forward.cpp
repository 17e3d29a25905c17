#include "fast_forward.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

/// Values of states that may be visited for each event, and for each packet that was skipped: this bounds what looking
/// for repetitions costs.
constexpr std::uint64_t visits_per_event = 4;
/// Costs of looking at a pending event, of putting it in order, and of the path of a flow, in values.
constexpr std::uint64_t visits_per_pending_event = 2, visits_per_ordered_event = 20, visits_per_flow = 100;
/// A flow with fewer packets left is no anchor.
constexpr std::uint64_t least_packets = 32;
/// A part does not rest for fewer periods.
constexpr std::uint64_t least_periods = 2;

}  // namespace

bool FastForward::is_possible(const PacketSystem& system, const NodeEvents& events) {
  const PacketRules& rules = system.rules;
  const bool has_late_failures =
      std::ranges::any_of(system.failures, [](const LinkFailure& failure) { return failure.time > Time::zero(); });
  return rules.fast_forward && rules.routing == PacketRouting::flow_hash && rules.loss == PacketLoss::go_back_n &&
         !rules.uses_credits && !rules.control->uses_telemetry && !has_late_failures && !events.in_scheduling_order();
}

/// The scheduler of a part that catches up. It has the clock of the part, and keeps the part's events up to the time of
/// the event for which the part catches up. Later events go to the kernel.
class FastForward::CatchUp final : public pdes::Scheduler {
 public:
  CatchUp(pdes::Scheduler& kernel, Time begin, const pdes::Event& end) : time(begin), until(end), kernel_(kernel) {}

  Time now() const override { return time; }
  void send(Rank to, pdes::Event event, std::span<const std::byte> more) override {
    if (event.time <= until.time)
      pending.push(event);
    else
      kernel_.send(to, event, more);
  }

  void schedule(const pdes::Event&) override { refuse(); }
  void resume(const pdes::Event&) override { refuse(); }
  bool is_certain(Time, pdes::Awaited) const override { refuse(); }
  bool advance(LpId, Time) override { refuse(); }
  void wait_until_certain(LpId) override { refuse(); }
  void post(Rank, std::span<const std::byte>) override { refuse(); }
  std::uint32_t depth(LpId) const override { refuse(); }
  void raise_depth(LpId, std::uint32_t) override { refuse(); }

  pdes::EventHeap pending;
  Time time;
  pdes::Event until;

 private:
  [[noreturn]] static void refuse() {
    ensure_failed("nodes that catch up only send events", std::source_location::current());
  }

  pdes::Scheduler& kernel_;
};

// ---- Parts ----

void FastForward::began(const Flow& flow) {
  for (const std::uint32_t part : parts_.add(flow)) dissolve(part);
}

void FastForward::ended(const Flow& flow) {
  if (const std::uint32_t part = parts_.of_flow(flow.slot); part != none) dissolve(part);
}

void FastForward::dissolve(std::uint32_t number) {
  if (watches_[number].rest != 0) wake(number, at_hand_);
  watches_[number] = {};
  parts_.dissolve(number);
}

void FastForward::divide() {
  wants_division_ = false;
  effort_.visited += view_.hosts.flows.size();
  for (const std::uint32_t number : parts_.divide()) {
    effort_.visited += parts_[number].flows.size() * visits_per_flow + parts_[number].ports.size();
    if (number >= watches_.size()) watches_.resize(number + 1);
    if (parts_[number].is_here) choose_anchor(number);
  }
}

/// Takes the flow with the most bytes left.
void FastForward::choose_anchor(std::uint32_t number) {
  const auto bytes_left = [&](std::uint32_t slot) {
    return view_.hosts.flows[slot].bytes - view_.hosts.flows[slot].next;
  };
  const std::uint32_t most = *std::ranges::max_element(parts_[number].flows, {}, bytes_left);
  effort_.visited += parts_[number].flows.size();
  watches_[number].anchor = has_many(view_.hosts.flows[most]) ? most : no_slot;
  watches_[number].has_state = false;
}

bool FastForward::has_many(const Flow& flow) const {
  return flow.bytes - flow.next >= least_packets * view_.system.rules.payload;
}

// ---- Events ----

/// Handles the late events that come before an event, and wakes up the part to which the event comes.
void FastForward::wake_for(const pdes::Event& event) {
  while (!late_.empty() && before(late_.top(), event)) handle_late(late_.pop());
  if (const std::uint32_t part = part_of(event); part != none && watches_[part].rest != 0) wake(part, event);
}

void FastForward::enqueues(const Port& port, const Packet& packet) {
  const std::uint32_t part = parts_.of_port(view_.ports.index_of(port));
  if (part == none || view_.events.is_here(packet.is_data() ? packet.source : packet.destination)) return;
  if (watches_[part].rest != 0) wake(part, at_hand_);
  watches_[part].has_state = false;
}

void FastForward::handle_late(const pdes::Event& event) {
  ++effort_.events;
  at_hand_ = event;
  handle_(event);
}

void FastForward::resumes(const pdes::Event& event) {
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

/// Returns the part to which an event comes from outside; none if it is not known or does not matter.
std::uint32_t FastForward::part_of(const pdes::Event& event) const {
  switch (event.kind) {
    case NodeEvents::arrival:
    case NodeEvents::transmission_end:
    case NodeEvents::port_timer:
      return parts_.of_port(view_.ports.index_of(view_.ports.at(events_.node_of(event), event.reserved)));
    case NodeEvents::flow_timer:
      return parts_.of_flow(event.node);
    default:
      return none;
  }
}

/// Returns whether an event of a node comes again a period later.
bool FastForward::belongs(const pdes::Event& event, std::uint32_t number) const {
  return events_.is_of_node(event) && event.kind != NodeEvents::flow_timer && part_of(event) == number;
}

/// Returns the events that wait for nodes of a part, in their order, but for timers.
std::vector<pdes::Event> FastForward::events_of(std::uint32_t number) {
  std::vector<pdes::Event> events;
  events_.kernel().visit_server_events([&](const pdes::Event& event) {
    effort_.visited += visits_per_pending_event;
    if (belongs(event, number)) events.push_back(event);
  });
  std::ranges::sort(events, pdes::before);
  effort_.visited += events.size() * visits_per_ordered_event;
  return events;
}

// ---- Repetition ----

bool FastForward::may_look() const { return effort_.visited <= visits_per_event * (effort_.events + effort_.skipped); }

void FastForward::sends(const Flow& flow) {
  if (catches_up_) return;
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
  if (!has_many(view_.hosts.flows[watch.anchor])) choose_anchor(number);
  if (watch.anchor == no_slot) return;
  if (!watch.has_state) return record(number);
  const std::size_t num_equal = states_.num_equal(parts_[number], watch.state);
  effort_.visited += std::min(num_equal, watch.state.values.size());
  if (num_equal == PortStates::npos && rest(number)) return;
  if (++watch.num_compared < watch.most_compared) return;
  watch.most_compared *= 2;
  record(number);
}

void FastForward::record(std::uint32_t number) {
  Watch& watch = watches_[number];
  const bool says_something = states_.record(parts_[number], events_of(number), watch.state);
  effort_.visited += watch.state.values.size() + watch.state.totals.size();
  if (!says_something) watch.state.values.assign(1, ~std::uint64_t{0});  // no state is equal
  watch.has_state = true;
  watch.num_compared = 0;
}

/// Brings a part to rest if its state, with its events, is the recorded one and may be repeated. Returns whether it is.
bool FastForward::rest(std::uint32_t number) {
  Watch& watch = watches_[number];
  const NetworkPart& part = parts_[number];
  effort_.visited += watch.state.values.size();
  if (!states_.is_equal(part, events_of(number), watch.state)) return false;
  const Time now = events_.now(), period = now - watch.state.time;
  // Times beyond the range end a run with a message of their own.
  const std::int64_t within_range = (Time::from_ps(Time::max().ps() / 2) - now).ps() / period.ps();
  watch.most_periods = std::min(states_.most_repetitions(part, watch.state),
                                static_cast<std::uint64_t>(std::max<std::int64_t>(within_range, 0)));
  if (watch.most_periods < least_periods) return false;
  pdes::Scheduler& kernel = events_.kernel();
  watch.events = kernel.withdraw([&](const pdes::Event& event) { return belongs(event, number); },
                                 [this](Time stopped_at) { catch_up(stopped_at); });
  if (watch.events.empty()) return false;
  watch.rest = ++num_rests_;
  ++num_resting_;
  watch.rests_since = now;
  const std::uint32_t node = view_.hosts.flows[watch.anchor].id.source;
  pdes::Event woken =
      events_.make(node, node, now + period * static_cast<std::int64_t>(watch.most_periods) + Time::from_ps(1));
  woken.kind = NodeEvents::resumption;
  woken.node = number;
  woken.detail = watch.rest;
  events_.send_here(woken);
  return true;
}

/// Brings a part to its state directly before an event, from which it continues.
void FastForward::wake(std::uint32_t number, const pdes::Event& until) {
  Watch& watch = watches_[number];
  watch.rest = 0;
  watch.has_state = false;
  --num_resting_;
  const Time since = watch.rests_since, period = since - watch.state.time;
  const std::int64_t num_before = std::max<std::int64_t>((until.time - since).ps() - 1, 0) / period.ps();
  const std::uint64_t num_periods = std::min(watch.most_periods, static_cast<std::uint64_t>(num_before));
  CatchUp work(events_.kernel(), since, until);
  events_.use(work);
  const std::uint64_t num_packets_before = num_packets(number);
  states_.advance(parts_[number], watch.events, watch.state, since, num_periods);
  effort_.skipped += num_packets(number) - num_packets_before;
  effort_.visited += watch.state.values.size() + watch.state.totals.size();
  for (pdes::Event event : std::exchange(watch.events, {})) {
    event.time += period * static_cast<std::int64_t>(num_periods);
    work.pending.push(event);
  }
  handle_events(work);
  events_.use_kernel();
  while (!work.pending.empty()) {
    const pdes::Event event = work.pending.pop();
    if (event.time == until.time)
      late_.push(event);
    else
      events_.send_here(event);
  }
}

/// Handles the events of a part that come before the event for which it catches up.
void FastForward::handle_events(CatchUp& work) {
  catches_up_ = true;
  while (!work.pending.empty() && before(work.pending.top(), work.until)) {
    const pdes::Event event = work.pending.pop();
    work.time = event.time;
    ++effort_.events;
    handle_(event);
  }
  catches_up_ = false;
}

/// Returns how many packets the ports of a part have sent.
std::uint64_t FastForward::num_packets(std::uint32_t number) const {
  std::uint64_t sum = 0;
  for (const std::uint32_t index : parts_[number].ports) sum += view_.ports[index].done.packets;
  return sum;
}

}  // namespace orrery::network
