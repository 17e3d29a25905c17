#include "tcp_connections.hpp"

#include <algorithm>
#include <array>

#include "orrery/network/packet_rules.hpp"

namespace orrery::network {

// ---- Both ends ----

/// In the order of scheduling each start of the timer is an event, because the order of its events is that of starts.
void TcpTransport::Connection::set(std::uint32_t host, Timer which, Time due) {
  alarm_.due = due;
  const bool waits = !services_.events.in_scheduling_order() && alarm_.pending <= due;
  if (due == Time::max() || waits) return;
  alarm_.pending = due;
  send_event(host, which, due, ++alarm_.event);
}

void TcpTransport::Connection::send_event(std::uint32_t host, Timer which, Time due, std::uint64_t detail) {
  pdes::Event event = services_.events.make(host, host, due);
  event.kind = NodeEvents::flow_timer;
  event.node = slot_;
  event.reserved = which;
  event.detail = detail;
  services_.events.send_here(event);
}

bool TcpTransport::Connection::is_over(const pdes::Event& event) {
  if (event.detail != alarm_.event) return false;
  alarm_.pending = Time::max();
  const Time due = alarm_.due;
  if (due > services_.events.now()) {
    set(services_.events.node_of(event), static_cast<Timer>(event.reserved), due);
    return false;
  }
  alarm_.due = Time::max();
  return true;
}

void TcpTransport::Connection::put(const Packet& packet, std::span<const std::uint64_t> words) {
  const std::uint32_t slot = services_.packets.put(packet);
  if (!words.empty()) services_.packets.attach(services_.packets[slot], words);
  if (out_ == nullptr || !services_.system.failures.empty()) out_ = services_.hops.by_flow(packet.source, packet);
  if (out_ == nullptr) return services_.packets.free(slot);
  services_.ports.enqueue(*out_, slot);
}

void TcpTransport::Connection::serialize_names(Archive& archive) {
  archive(source, destination, number, ports, alarm_.due, alarm_.pending, alarm_.event);
}

// ---- The sending end ----

TcpTransport::Outgoing::Outgoing(const NodeServices& services, std::uint32_t slot)
    : Connection(services, slot),
      sender_(services.system.rules.tcp, services.system.rules.control->make_tcp(), *this) {}

/// A message without bytes takes one, so that it has an end that can come.
void TcpTransport::Outgoing::send(std::uint32_t flow, std::uint64_t bytes) {
  bytes = std::max<std::uint64_t>(bytes, 1);
  messages_.push_back({sender_.tail() + bytes, flow});
  sender_.offer(bytes);
}

void TcpTransport::Outgoing::receive(const TcpAcknowledgement& acknowledgement) {
  sender_.receive(acknowledgement);
  const std::uint64_t byte = sender_.unacknowledged();
  while (first_ < messages_.size() && messages_[first_].end <= byte) {
    const FlowId flow{source, destination, messages_[first_++].flow};
    if (first_ == messages_.size() || first_ >= 64) {
      messages_.erase(messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    services_.user.acknowledged(flow);
  }
}

/// A sender that has no way to its receiver would wait for ever.
void TcpTransport::Outgoing::expire() {
  services_.hops.require_way({source, destination, number});
  sender_.expire();
}

Packet TcpTransport::Outgoing::packet(Packet::Kind kind, std::uint32_t size) const {
  Packet packet;
  packet.source = source;
  packet.destination = destination;
  packet.ports = ports;
  packet.number = number;
  packet.sender = slot();
  packet.receiver = other_slot;
  packet.kind = kind;
  packet.size = size;
  return packet;
}

void TcpTransport::Outgoing::send_syn() {
  Packet syn = packet(Packet::Kind::request, services_.system.rules.header + syn_options);
  syn.flags = tcp_flags::syn;
  put(syn, {});
}

void TcpTransport::Outgoing::send_handshake() {
  Packet last = packet(Packet::Kind::request, services_.system.rules.header);
  last.sequence = 1;
  put(last, {});
}

void TcpTransport::Outgoing::send_segment(std::uint64_t first, std::uint32_t length, bool has_cwr) {
  Packet segment = packet(Packet::Kind::data, services_.system.rules.header + length);
  segment.sequence = first;
  if (has_cwr) segment.flags = tcp_flags::cwr;
  auto message = messages_.begin() + static_cast<std::ptrdiff_t>(first_);
  if (message->end <= first)
    message = std::upper_bound(message, messages_.end(), first,
                               [](std::uint64_t byte, const Message& other) { return byte < other.end; });
  segment.flow = message->flow;
  const std::uint64_t end = first + length;
  if (message->end > end) return put(segment, {});
  segment.out_of_order = static_cast<std::uint16_t>(message->end - first);
  std::vector<std::uint64_t> more;
  for (++message; message != messages_.end() && message->end <= end; ++message)
    more.insert(more.end(), {message->end, message->flow});
  put(segment, more);
}

void TcpTransport::Outgoing::wake_soon() { send_event(source, waking, now() + Time::from_ps(1), 0); }

void TcpTransport::Outgoing::serialize(Archive& archive) {
  serialize_names(archive);
  archive(place, messages_, first_, sender_);
}

// ---- The receiving end ----

TcpTransport::Incoming::Incoming(const NodeServices& services, std::uint32_t slot)
    : Connection(services, slot), receiver_(services.system.rules.tcp, services.system.rules.control->needs_marks) {}

Packet TcpTransport::Incoming::packet(std::uint32_t size) const {
  Packet packet;
  packet.source = destination;
  packet.destination = source;
  packet.ports = ports >> 16U | ports << 16U;
  packet.number = number;
  packet.sender = other_slot;
  packet.receiver = slot();
  packet.kind = Packet::Kind::acknowledgement;
  packet.size = size;
  return packet;
}

void TcpTransport::Incoming::accept() {
  Packet answer = packet(services_.system.rules.header + syn_options);
  answer.flags = tcp_flags::syn;
  answer.stamp = stamp_of_window(receiver_.first_window());
  put(answer, {});
}

void TcpTransport::Incoming::receive(std::uint32_t slot) {
  const Packet& packet = services_.packets[slot];
  TcpArrival arrival{.first = packet.sequence, .is_marked = packet.is_marked};
  if (packet.is_data()) {
    arrival.length = packet.size - services_.system.rules.header;
    if (packet.out_of_order != 0) note_ends(packet);
  }
  services_.packets.free(slot);
  receiver_.receive(arrival, *this);
  tell_user();
}

void TcpTransport::Incoming::note_ends(const Packet& packet) {
  note_end({packet.sequence + packet.out_of_order, packet.flow});
  const auto words = services_.packets.words_of(packet);
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) note_end({words[i], static_cast<std::uint32_t>(words[i + 1])});
}

void TcpTransport::Incoming::note_end(End end) {
  if (end.first <= receiver_.expected()) return;
  const auto at = std::ranges::lower_bound(ends_, end.first, {}, &End::first);
  if (at == ends_.end() || at->first != end.first) ends_.insert(at, end);
}

void TcpTransport::Incoming::acknowledge(std::uint64_t byte, std::uint64_t window, bool has_echo,
                                         std::span<const std::uint64_t> blocks) {
  const auto options = static_cast<std::uint32_t>(blocks.empty() ? 0 : (2 + 4 * blocks.size() + 3) / 4 * 4);
  Packet answer = packet(services_.system.rules.header + options);
  answer.sequence = byte;
  answer.stamp = stamp_of_window(window);
  if (has_echo) answer.flags = tcp_flags::echo;
  put(answer, blocks);
}

/// In the order of scheduling, what follows from a message is scheduled before its acknowledgement, as in ns-3.
void TcpTransport::Incoming::deliver() {
  if (services_.events.in_scheduling_order()) tell_user();
}

/// Tells the user of the messages that are there. The user may send others at once.
void TcpTransport::Incoming::tell_user() {
  while (!ends_.empty() && ends_.front().first <= receiver_.expected()) {
    const FlowId flow{source, destination, ends_.front().second};
    ends_.erase(ends_.begin());
    services_.user.received(flow);
  }
}

void TcpTransport::Incoming::serialize(Archive& archive) {
  serialize_names(archive);
  archive(receiver_, ends_);
}

}  // namespace orrery::network
