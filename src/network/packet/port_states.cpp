#include "port_states.hpp"

#include <algorithm>

namespace orrery::network {
namespace {

std::uint64_t value_of(Time time) { return static_cast<std::uint64_t>(time.ps()); }

}  // namespace

// ---- Visitors ----

/// Writes a state down.
class PortStates::Recorder {
 public:
  Recorder(const NetworkView& view, PartState& state) : flows_(view.hosts.flows), state_(state) {}

  bool has_failed() const { return has_failed_; }
  void fail() { has_failed_ = true; }
  /// A value that has to repeat itself.
  void same(std::uint64_t value) { state_.values.push_back(value); }
  /// A time, whose distance from now counts.
  void time(const Time& time) { same(value_of(time - state_.time)); }
  /// A byte of the message of a flow.
  void place(const std::uint64_t& byte, std::uint32_t flow) { same(byte - flows_[flow].rate.acknowledged); }
  /// A count for results only.
  void total(const std::uint64_t& count) { state_.totals.push_back(count); }
  void total(const Time& sum) { state_.totals.push_back(value_of(sum)); }

 private:
  const FlowPool& flows_;
  PartState& state_;
  bool has_failed_ = false;
};

/// Compares with a state. Has failed at the first difference.
class PortStates::Comparer {
 public:
  Comparer(const NetworkView& view, const PartState& state)
      : flows_(view.hosts.flows), now_(view.events.now()), values_(state.values) {}

  bool has_failed() const { return has_failed_; }
  void fail() { has_failed_ = true; }
  void same(std::uint64_t value) {
    if (num_equal_ < values_.size() && values_[num_equal_] == value)
      ++num_equal_;
    else
      fail();
  }
  void time(const Time& time) { same(value_of(time - now_)); }
  void place(const std::uint64_t& byte, std::uint32_t flow) { same(byte - flows_[flow].rate.acknowledged); }
  void total(const std::uint64_t&) {}
  void total(const Time&) {}

  std::size_t num_equal() const { return num_equal_; }
  bool is_equal() const { return !has_failed_ && num_equal_ == values_.size(); }

 private:
  const FlowPool& flows_;
  Time now_;
  std::span<const std::uint64_t> values_;
  std::size_t num_equal_ = 0;
  bool has_failed_ = false;
};

/// Advances each visited value by some repetitions.
class PortStates::Mover {
 public:
  Mover(const PartState& earlier, Time now, std::uint64_t num_repetitions, std::span<const std::uint64_t> progress)
      : earlier_(earlier),
        num_repetitions_(num_repetitions),
        delay_((now - earlier.time) * static_cast<std::int64_t>(num_repetitions)),
        progress_(progress) {}

  bool has_failed() const { return false; }
  void fail() {}
  void same(std::uint64_t) {}
  void time(Time& time) { time += delay_; }
  void place(std::uint64_t& byte, std::uint32_t flow) { byte += progress_[flow]; }
  void total(std::uint64_t& count) { count += num_repetitions_ * (count - earlier_.totals[next_++]); }
  void total(Time& sum) {
    std::uint64_t count = value_of(sum);
    total(count);
    sum = Time::from_ps(static_cast<std::int64_t>(count));
  }

 private:
  const PartState& earlier_;
  std::uint64_t num_repetitions_;
  Time delay_;
  std::span<const std::uint64_t> progress_;  // [slots of flows] in all repetitions
  std::size_t next_ = 0;                     // total
};

// ---- What counts ----

/// Calls a visitor for all values that count, always in the same order, until it has failed. `Network` has packets,
/// ports and hosts, which only a visitor that moves them gets as variables.
template <class Visitor, class Network>
class PortStates::Walk {
 public:
  Walk(Visitor& visitor, const NetworkView& view, const Network& network)
      : visitor_(visitor), view_(view), network_(network), now_(view.events.now()) {}

  void part(const NetworkPart& part) {
    for (const std::uint32_t node : part.switches)
      visitor_.same(static_cast<std::uint64_t>(network_.ports.buffer(node).used));
    for (const std::uint32_t index : part.ports) {
      if (visitor_.has_failed()) return;
      port(network_.ports[index]);
    }
  }

  void events(std::span<const pdes::Event> events) {
    visitor_.same(events.size());
    for (pdes::Event event : events) {
      if (visitor_.has_failed()) return;
      visitor_.same(std::uint64_t{event.target.value()} << 32U | std::uint64_t{event.kind} << 16U | event.reserved);
      visitor_.time(event.time);
      if (event.kind == NodeEvents::arrival) packet(network_.packets[event.node]);
      if (event.kind != NodeEvents::port_timer) continue;
      const Port& port = view_.ports.at(view_.events.node_of(event), event.reserved);
      visitor_.same(view_.hosts.nics[view_.ports.host_port_of(port)].wake == event.detail ? 1 : 0);
    }
  }

 private:
  void port(auto& port) {
    visitor_.same(port.done.drops);
    visitor_.same(port.marking.num_draws);
    const bool is_busy = port.free > now_;
    visitor_.same((is_busy ? 1U : 0U) | (port.end_is_due ? 2U : 0U) | (port.is_paused ? 4U : 0U) |
                  (port.is_down ? 8U : 0U) | (port.ingress.pauses_peer ? 16U : 0U));
    if (is_busy) visitor_.time(port.free);
    visitor_.same(static_cast<std::uint64_t>(port.ingress.bytes));
    visitor_.same(static_cast<std::uint64_t>(port.ingress.headroom));
    queue(port.frames);
    queue(port.queue);
    auto& done = port.done;
    visitor_.total(done.packets);
    visitor_.total(done.bytes);
    visitor_.total(done.busy);
    visitor_.total(done.marks);
    visitor_.total(done.pauses);
    visitor_.total(done.queueing);
    if (view_.ports.is_host(port)) nic(network_.hosts.nics[view_.ports.host_port_of(port)]);
  }

  void nic(auto& nic) {
    visitor_.same(std::uint64_t{nic.num_unsent} << 32U | nic.num_over);
    visitor_.same(nic.last << 1U | (nic.passes_next ? 1U : 0U));
    const bool is_woken = nic.wakes_at != Time::max();
    visitor_.same(is_woken ? 1 : 0);
    if (is_woken) visitor_.time(nic.wakes_at);
    queue(nic.acknowledgements);
    visitor_.same(nic.flows.size());
    for (Flow* const listed : nic.flows) flow(network_.hosts.flows[listed->slot]);
  }

  void flow(auto& flow) {
    visitor_.same(std::uint64_t{flow.id.number} << 32U | flow.slot);
    visitor_.same(flow.is_over ? 1 : 0);
    if (flow.is_over) return;
    if (flow.receiver == no_slot || (flow.control && !flow.control->is_steady())) return visitor_.fail();
    visitor_.same(flow.has_sent_empty ? 1 : 0);
    visitor_.same(flow.rate.rate);
    visitor_.same(flow.rate.window);
    visitor_.place(flow.next, flow.slot);
    visitor_.place(flow.rate.sent, flow.slot);
    const bool has_to_wait = flow.available > now_;
    visitor_.same(has_to_wait ? 1 : 0);
    if (has_to_wait) visitor_.time(flow.available);
    auto& reception = network_.hosts.receptions.pool[flow.receiver];
    const bool is_received =
        reception.source == flow.id.source && reception.flow == flow.id.number && !reception.is_over;
    visitor_.same(is_received ? 1 : 0);
    if (is_received && reception.last_gap != Reception::no_gap) return visitor_.fail();
    if (is_received) visitor_.place(reception.expected, flow.slot);
    if (!flow.recovery) return;
    auto& recovery = *flow.recovery;
    if (!recovery.missing.empty() || !recovery.ahead.empty()) return visitor_.fail();
    visitor_.same(recovery.num_timeouts);
    visitor_.same(flow.timers[Flow::retransmission_timer] != 0 ? 1 : 0);
    visitor_.time(recovery.news);
  }

  void queue(const PacketQueue& queue) {
    visitor_.same(queue.size);
    for (std::uint32_t slot = queue.first; slot != no_slot && !visitor_.has_failed(); slot = view_.packets[slot].next)
      packet(network_.packets[slot]);
  }

  void packet(auto& packet) {
    visitor_.same(static_cast<std::uint64_t>(packet.kind) | (packet.is_marked ? 1U << 8U : 0U) |
                  (packet.is_last ? 1U << 9U : 0U) | std::uint64_t{packet.port} << 16U |
                  std::uint64_t{packet.size} << 32U);
    if (packet.is_pfc_frame()) return;
    if (!is_known(packet)) return visitor_.fail();
    visitor_.same(std::uint64_t{packet.source} << 32U | packet.destination);
    visitor_.same(packet.sender);
    visitor_.place(packet.sequence, packet.sender);
    visitor_.time(packet.stamp);
  }

  /// Returns whether the flow of a packet is one of this rank that is not over.
  bool is_known(const Packet& packet) const {
    if (packet.sender == no_slot) return false;  // the packet comes from a checkpoint
    const std::uint32_t source = packet.is_data() ? packet.source : packet.destination;
    if (!view_.events.is_here(source)) return false;
    const Flow& flow = view_.hosts.flows[packet.sender];
    return flow.id.number == packet.flow && flow.id.source == source && !flow.is_over;
  }

  Visitor& visitor_;
  const NetworkView& view_;
  const Network& network_;
  Time now_;
};

// ---- States ----

/// Returns how many flows that are not over send by the ports of a part.
std::size_t PortStates::num_flows(const NetworkPart& part) const {
  std::size_t sum = 0;
  for (const std::uint32_t index : part.ports) {
    const Port& port = view_.ports[index];
    if (view_.ports.is_host(port))
      sum += static_cast<std::size_t>(
          std::ranges::count(view_.hosts.nics[view_.ports.host_port_of(port)].flows, false, &Flow::is_over));
  }
  return sum;
}

bool PortStates::record(const NetworkPart& part, std::span<const pdes::Event> events, PartState& state) const {
  state.time = view_.events.now();
  state.values.clear();
  state.totals.clear();
  state.acknowledged.clear();
  for (const std::uint32_t slot : part.flows) state.acknowledged.push_back(view_.hosts.flows[slot].rate.acknowledged);
  if (num_flows(part) != part.flows.size()) return false;
  Recorder recorder(view_, state);
  Walk walk(recorder, view_, view_);
  walk.part(part);
  walk.events(events);
  return !recorder.has_failed();
}

std::size_t PortStates::num_equal(const NetworkPart& part, const PartState& state) const {
  Comparer comparer(view_, state);
  Walk(comparer, view_, view_).part(part);
  return comparer.has_failed() ? comparer.num_equal() : npos;
}

bool PortStates::is_equal(const NetworkPart& part, std::span<const pdes::Event> events, const PartState& state) const {
  Comparer comparer(view_, state);
  Walk walk(comparer, view_, view_);
  walk.part(part);
  walk.events(events);
  return comparer.is_equal();
}

std::uint64_t PortStates::most_repetitions(const NetworkPart& part, const PartState& earlier) const {
  std::uint64_t most = PortStates::npos;
  for (std::size_t i = 0; i < part.flows.size(); ++i) {
    const Flow& flow = view_.hosts.flows[part.flows[i]];
    const std::uint64_t progress = flow.rate.acknowledged - earlier.acknowledged[i];
    if (progress > 0) most = std::min(most, flow.next < flow.bytes ? (flow.bytes - 1 - flow.next) / progress : 0);
  }
  return most == npos ? 0 : most;
}

void PortStates::advance(const NetworkPart& part, std::span<const pdes::Event> events, const PartState& earlier,
                         Time now, std::uint64_t num_repetitions) {
  std::vector<std::uint64_t> progress(view_.hosts.flows.size());
  for (std::size_t i = 0; i < part.flows.size(); ++i) {
    const std::uint32_t slot = part.flows[i];
    progress[slot] = num_repetitions * (view_.hosts.flows[slot].rate.acknowledged - earlier.acknowledged[i]);
  }
  Mover mover(earlier, now, num_repetitions, progress);
  Walk walk(mover, view_, movable_);
  walk.part(part);
  walk.events(events);
  for (const std::uint32_t slot : part.flows) movable_.hosts.flows[slot].rate.acknowledged += progress[slot];
}

}  // namespace orrery::network
