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
  Recorder(const PacketDevices& devices, PartState& state) : flows_(devices.flows_), state_(state) {}

  bool has_failed() const { return has_failed_; }
  void fail() { has_failed_ = true; }
  /// What has to be the same again.
  void same(std::uint64_t value) { state_.values.push_back(value); }
  /// A time, whose distance from now counts.
  void time(Time& time) { same(value_of(time - state_.time)); }
  /// A byte of the message of a flow.
  void place(std::uint64_t& byte, std::uint32_t flow) { same(byte - flows_[flow].rate.acknowledged); }
  /// What is counted for results only.
  void total(std::uint64_t& count) { state_.totals.push_back(count); }
  void total(Time& sum) { state_.totals.push_back(value_of(sum)); }

 private:
  const FlowPool& flows_;
  PartState& state_;
  bool has_failed_ = false;
};

/// Compares with a state. Has failed at the first difference.
class PortStates::Comparer {
 public:
  Comparer(const PacketDevices& devices, const PartState& state)
      : flows_(devices.flows_), now_(devices.now()), values_(state.values) {}

  bool has_failed() const { return has_failed_; }
  void fail() { has_failed_ = true; }
  void same(std::uint64_t value) {
    if (num_equal_ < values_.size() && values_[num_equal_] == value)
      ++num_equal_;
    else
      fail();
  }
  void time(Time& time) { same(value_of(time - now_)); }
  void place(std::uint64_t& byte, std::uint32_t flow) { same(byte - flows_[flow].rate.acknowledged); }
  void total(std::uint64_t&) {}
  void total(Time&) {}

  std::size_t num_equal() const { return num_equal_; }
  bool is_equal() const { return !has_failed_ && num_equal_ == values_.size(); }

 private:
  const FlowPool& flows_;
  Time now_;
  std::span<const std::uint64_t> values_;
  std::size_t num_equal_ = 0;
  bool has_failed_ = false;
};

/// Advances all that is visited by some repetitions.
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

template <class Visitor>
void PortStates::walk(Visitor& visitor, const NetworkPart& part) {
  for (const std::uint32_t node : part.switches) visitor.same(static_cast<std::uint64_t>(devices_.nodes_[node].shared));
  for (const std::uint32_t index : part.ports) {
    if (visitor.has_failed()) return;
    walk(visitor, devices_.ports_[index]);
  }
}

template <class Visitor>
void PortStates::walk(Visitor& visitor, std::span<const pdes::Event> events) {
  visitor.same(events.size());
  for (pdes::Event event : events) {
    if (visitor.has_failed()) return;
    visitor.same(std::uint64_t{event.target.value()} << 32U | std::uint64_t{event.kind} << 16U | event.reserved);
    visitor.time(event.time);
    if (event.kind == PacketDevices::arrival) walk(visitor, devices_.packets_[event.node]);
    if (event.kind != PacketDevices::wake) continue;
    const std::uint32_t node = event.target.value() - devices_.part_.first_process.value();
    visitor.same(devices_.nic(devices_.port(node, event.reserved)).wake == event.detail ? 1 : 0);
  }
}

template <class Visitor>
void PortStates::walk(Visitor& visitor, Port& port) {
  visitor.same(port.done.drops);
  visitor.same(port.marking.num_draws);
  const bool is_busy = port.free > devices_.now();
  visitor.same((is_busy ? 1U : 0U) | (port.end_is_due ? 2U : 0U) | (port.is_paused ? 4U : 0U) |
               (port.is_down ? 8U : 0U) | (port.ingress.pauses_peer ? 16U : 0U));
  if (is_busy) visitor.time(port.free);
  visitor.same(static_cast<std::uint64_t>(port.ingress.bytes));
  visitor.same(static_cast<std::uint64_t>(port.ingress.headroom));
  walk(visitor, port.frames);
  walk(visitor, port.queue);
  PortStatistics& done = port.done;
  visitor.total(done.packets);
  visitor.total(done.bytes);
  visitor.total(done.busy);
  visitor.total(done.marks);
  visitor.total(done.pauses);
  visitor.total(done.queueing);
  if (devices_.is_host(port)) walk(visitor, devices_.nic(port));
}

template <class Visitor>
void PortStates::walk(Visitor& visitor, Nic& nic) {
  visitor.same(std::uint64_t{nic.num_unsent} << 32U | nic.num_over);
  visitor.same(nic.last << 1U | (nic.passes_next ? 1U : 0U));
  const bool is_woken = nic.wakes_at != Time::max();
  visitor.same(is_woken ? 1 : 0);
  if (is_woken) visitor.time(nic.wakes_at);
  walk(visitor, nic.acknowledgements);
  visitor.same(nic.flows.size());
  for (Flow* const flow : nic.flows) walk(visitor, *flow);
}

template <class Visitor>
void PortStates::walk(Visitor& visitor, Flow& flow) {
  visitor.same(std::uint64_t{flow.id.number} << 32U | flow.slot);
  visitor.same(flow.is_over ? 1 : 0);
  if (flow.is_over) return;
  if (flow.receiver == no_slot || (flow.control && !flow.control->is_steady())) return visitor.fail();
  visitor.same(flow.has_sent_empty ? 1 : 0);
  visitor.same(flow.rate.rate);
  visitor.same(flow.rate.window);
  visitor.place(flow.next, flow.slot);
  visitor.place(flow.rate.sent, flow.slot);
  const bool has_to_wait = flow.available > devices_.now();
  visitor.same(has_to_wait ? 1 : 0);
  if (has_to_wait) visitor.time(flow.available);
  Reception& reception = devices_.receptions_.pool[flow.receiver];
  const bool is_received = reception.source == flow.id.source && reception.flow == flow.id.number && !reception.is_over;
  visitor.same(is_received ? 1 : 0);
  if (is_received && reception.last_gap != Reception::no_gap) return visitor.fail();
  if (is_received) visitor.place(reception.expected, flow.slot);
  if (!flow.recovery) return;
  Recovery& recovery = *flow.recovery;
  if (!recovery.missing.empty() || !recovery.ahead.empty()) return visitor.fail();
  visitor.same(recovery.num_timeouts);
  visitor.same(flow.timers[Flow::retransmission_timer] != 0 ? 1 : 0);
  visitor.time(recovery.news);
}

template <class Visitor>
void PortStates::walk(Visitor& visitor, const PacketQueue& queue) {
  visitor.same(queue.size);
  for (std::uint32_t slot = queue.first; slot != no_slot && !visitor.has_failed(); slot = devices_.packets_[slot].next)
    walk(visitor, devices_.packets_[slot]);
}

template <class Visitor>
void PortStates::walk(Visitor& visitor, Packet& packet) {
  visitor.same(static_cast<std::uint64_t>(packet.kind) | (packet.is_marked ? 1U << 8U : 0U) |
               (packet.is_last ? 1U << 9U : 0U) | std::uint64_t{packet.port} << 16U |
               std::uint64_t{packet.size} << 32U);
  if (packet.kind == Packet::Kind::pause || packet.kind == Packet::Kind::resume) return;
  if (!is_known(packet)) return visitor.fail();
  visitor.same(std::uint64_t{packet.source} << 32U | packet.destination);
  visitor.same(packet.sender);
  visitor.place(packet.sequence, packet.sender);
  visitor.time(packet.stamp);
}

/// Returns whether the flow of a packet is one of this rank that is not over.
bool PortStates::is_known(const Packet& packet) const {
  if (packet.sender == no_slot) return false;  // a checkpoint had the packet
  const std::uint32_t source = packet.is_data() ? packet.source : packet.destination;
  if (devices_.part_.of_node[source] != devices_.part_.here) return false;
  const Flow& flow = devices_.flows_[packet.sender];
  return flow.id.number == packet.flow && flow.id.source == source && !flow.is_over;
}

// ---- States ----

/// Returns how many flows that are not over send by the ports of a part.
std::size_t PortStates::num_flows(const NetworkPart& part) const {
  std::size_t sum = 0;
  for (const std::uint32_t index : part.ports) {
    const Port& port = devices_.ports_[index];
    if (devices_.is_host(port))
      sum += static_cast<std::size_t>(
          std::ranges::count(devices_.nics_[devices_.nic_of(port)].flows, false, &Flow::is_over));
  }
  return sum;
}

bool PortStates::record(const NetworkPart& part, std::span<const pdes::Event> events, PartState& state) {
  state.time = devices_.now();
  state.values.clear();
  state.totals.clear();
  state.acknowledged.clear();
  for (const std::uint32_t slot : part.flows) state.acknowledged.push_back(devices_.flows_[slot].rate.acknowledged);
  if (num_flows(part) != part.flows.size()) return false;
  Recorder recorder(devices_, state);
  walk(recorder, part);
  walk(recorder, events);
  return !recorder.has_failed();
}

std::size_t PortStates::num_equal(const NetworkPart& part, const PartState& state) {
  Comparer comparer(devices_, state);
  walk(comparer, part);
  return comparer.has_failed() ? comparer.num_equal() : npos;
}

bool PortStates::is_equal(const NetworkPart& part, std::span<const pdes::Event> events, const PartState& state) {
  Comparer comparer(devices_, state);
  walk(comparer, part);
  walk(comparer, events);
  return comparer.is_equal();
}

std::uint64_t PortStates::most_repetitions(const NetworkPart& part, const PartState& earlier) const {
  std::uint64_t most = PortStates::npos;
  for (std::size_t i = 0; i < part.flows.size(); ++i) {
    const Flow& flow = devices_.flows_[part.flows[i]];
    const std::uint64_t progress = flow.rate.acknowledged - earlier.acknowledged[i];
    if (progress > 0) most = std::min(most, flow.next < flow.bytes ? (flow.bytes - 1 - flow.next) / progress : 0);
  }
  return most == npos ? 0 : most;
}

void PortStates::advance(const NetworkPart& part, std::span<const pdes::Event> events, const PartState& earlier,
                         Time now, std::uint64_t num_repetitions) {
  std::vector<std::uint64_t> progress(devices_.flows_.size());
  for (std::size_t i = 0; i < part.flows.size(); ++i) {
    const std::uint32_t slot = part.flows[i];
    progress[slot] = num_repetitions * (devices_.flows_[slot].rate.acknowledged - earlier.acknowledged[i]);
  }
  Mover mover(earlier, now, num_repetitions, progress);
  walk(mover, part);
  walk(mover, events);
  for (const std::uint32_t slot : part.flows) devices_.flows_[slot].rate.acknowledged += progress[slot];
}

}  // namespace orrery::network
