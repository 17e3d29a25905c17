#include "ports.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "packet/port_observer.hpp"
#include "packet/transports/host_transport.hpp"
#include "queue_discipline.hpp"

namespace orrery::network {

Ports::Ports(const PacketSystem& system, NodeEvents& events, PacketStore& packets)
    : PortTable(system), events_(events), packets_(packets) {}

void Ports::connect(QueueDiscipline& queues, HostTransport& hosts, PortObserver& observer) {
  queues_ = &queues;
  hosts_ = &hosts;
  observer_ = &observer;
}

// ---- Transmission ----

void Ports::kick(Port& port) {
  std::uint64_t num_before = 0;
  do {
    num_before = port.done.packets;
    begin_next(port);
  } while (port.done.packets != num_before && port.free == events_.now());
}

void Ports::begin_next(Port& port) {
  if (port.end_is_due) return;
  if (events_.now() < port.free) {
    if (has_work(port)) expect_end(port);
    return;
  }
  if (!port.frames.empty()) return transmit(port, port.frames.pop(packets_));
  if (!is_host(port)) {
    if (!port.is_paused && !port.queue.empty()) queues_->serve(port);
    return;
  }
  if (const std::uint32_t slot = hosts_->next(port); slot != no_slot) queues_->send(port, slot);
}

/// Returns whether the port may have something to send when it is free.
bool Ports::has_work(const Port& port) const {
  if (!port.frames.empty() || !port.queue.empty()) return true;
  return is_host(port) && hosts_->has_work(port);
}

void Ports::expect_end(Port& port) {
  pdes::Event end = events_.make(port.node, port.node, port.free);
  end.kind = NodeEvents::transmission_end;
  end.reserved = static_cast<std::uint16_t>(port.number);
  events_.send_here(end);
  port.end_is_due = true;
}

void Ports::end_transmission(Port& port) {
  port.end_is_due = false;
  kick(port);
}

void Ports::transmit(Port& port, std::uint32_t slot) {
  const Time now = events_.now();
  const std::uint32_t size = packets_[slot].size;
  const Time takes = port.takes(size, system().rules);
  port.free = now + takes;
  ++port.done.packets;
  port.done.bytes += size;
  port.done.busy += takes;
  observer_->transmits(port, packets_[slot]);
  // A transmission of less than half a tick, without an event for its end, is over at once (kick). The packet is at the
  // other end later than now, as RelayDelays promises.
  const bool is_ordered = events_.in_scheduling_order();
  const bool is_over = takes == Time::zero() && !is_ordered;
  if (port.free < Time::max() && !is_over && (is_ordered || has_work(port))) expect_end(port);
  const Time there = port.free + port.delay;
  hand_over(port, slot, is_ordered ? there : std::max(there, now + least_link_delay));
}

/// Lets a packet be at the other end of the link at the time `there`.
void Ports::hand_over(Port& port, std::uint32_t slot, Time there) {
  if (there == Time::max())
    throw Error(ErrorCode::bad_input,
                fmt::format("a packet from node {} to node {} would come after the range of time (106 days); expected "
                            "fewer bytes or faster links",
                            port.node, port.peer.node));
  const Packet& packet = packets_[slot];
  pdes::Event onward = events_.make(port.node, port.peer.node, there);
  onward.kind = NodeEvents::arrival;
  onward.node = slot;
  onward.reserved = static_cast<std::uint16_t>(port.peer.port);
  const bool tells_receiver = system().rules.completion == PacketCompletion::acknowledged && packet.is_last &&
                              packet.kind == Packet::Kind::acknowledgement && port.peer.node == packet.destination &&
                              !events_.in_scheduling_order();
  if (tells_receiver) {
    pdes::Event told = events_.make(port.node, packet.source, there);
    told.kind = NodeEvents::notice;
    told.node = packet.flow;
    told.detail = packet.destination;
    events_.send(packet.source, told);
  }
  if (events_.is_here(port.peer.node)) return events_.send_here(onward);
  PacketStore::Bytes bytes;
  packets_.write(slot, bytes);
  events_.send(port.peer.node, onward, bytes.span());
  packets_.free(slot);
}

// ---- Queues ----

void Ports::enqueue(Port& port, std::uint32_t slot) {
  observer_->enqueues(port, packets_[slot]);
  port.queue.push(packets_, slot);
  port.done.deepest_queue = std::max(port.done.deepest_queue, port.queue.bytes);
  port.done.queueing -= events_.now();
  kick(port);
  port.done.most_waiting = std::max(port.done.most_waiting, port.queue.size);
}

std::uint32_t Ports::dequeue(Port& port) {
  port.done.queueing += events_.now();
  const std::uint32_t slot = port.queue.pop(packets_);
  observer_->dequeued(port, packets_[slot]);
  return slot;
}

std::uint32_t Ports::dequeue_last(Port& port) {
  PacketQueue rest;
  const std::uint32_t last = port.queue.last;
  while (port.queue.first != last) rest.push(packets_, port.queue.pop(packets_));
  port.queue = rest;
  port.done.queueing += events_.now();
  observer_->took_last(port);
  return last;
}

void Ports::drop(Port& port, std::uint32_t slot) {
  ++port.done.drops;
  packets_.free(slot);
}

// ---- PFC frames and failures ----

void Ports::send_frame(Port& port, Packet::Kind kind) {
  Packet frame;
  frame.kind = kind;
  frame.size = system().rules.pause_frame;
  port.frames.push(packets_, packets_.put(frame));
  kick(port);
}

void Ports::obey(Port& port, std::uint32_t slot) {
  port.is_paused = packets_[slot].kind == Packet::Kind::pause;
  port.done.pauses += port.is_paused ? 1 : 0;
  observer_->paused(port, port.is_paused);
  packets_.free(slot);
  if (!port.is_paused) kick(port);
}

void Ports::fail_link(Port& port) {
  port.is_down = true;
  while (!port.frames.empty()) packets_.free(port.frames.pop(packets_));
  while (!port.queue.empty()) drop(port, queues_->take(port));
  if (port.is_paused) observer_->paused(port, false);
  queues_->fail(port);
}

void Ports::serialize(Port& port, Archive& archive) {
  archive(port.free, port.end_is_due, port.is_paused, port.is_down, port.marking.num_draws, port.done);
  archive(port.ingress.bytes, port.ingress.headroom, port.ingress.pauses_peer);
  queues_->serialize(port, archive);
  packets_.serialize(port.frames, archive);
  packets_.serialize(port.queue, archive);
}

}  // namespace orrery::network
