#include <algorithm>
#include <utility>

#include "orrery/network/packet_rules.hpp"
#include "tcp_connections.hpp"

namespace orrery::network {

TcpTransport::TcpTransport(const NodeServices& services, QueueDiscipline& queues)
    : services_(services), queues_(queues), num_opened_(services.system.graph.num_hosts()) {}

TcpTransport::~TcpTransport() = default;

void TcpTransport::send(const FlowRequest& request) { connection_for(request).send(request.id.number, request.bytes); }

/// Returns the connection that carries a message, which begins with the first one.
TcpTransport::Outgoing& TcpTransport::connection_for(const FlowRequest& request) {
  const TcpRules& rules = services_.system.rules.tcp;
  const FlowId& id = request.id;
  Pair& pair = pairs_[flow_key(id.source, id.destination)];
  std::uint32_t place = pair.num_messages++;
  if (request.connection != FlowRequest::any_connection)
    place = request.connection;
  else if (rules.connections > 0)
    place %= rules.connections;
  const auto at = std::ranges::lower_bound(pair.slots, place, {}, &std::pair<std::uint32_t, std::uint32_t>::first);
  if (at != pair.slots.end() && at->first == place) return *outgoing_[at->second];
  services_.hops.first(id, request.ports);  // throws if there is no way
  Outgoing& opened = open(id.source, num_opened_[services_.system.graph.host_number(id.source)]++);
  opened.destination = id.destination;
  opened.ports = request.ports;
  opened.place = place;
  pair.slots.insert(at, {place, opened.slot()});
  return opened;
}

TcpTransport::Outgoing& TcpTransport::open(std::uint32_t source, std::uint32_t number) {
  const auto [found, is_new] = senders_.try_emplace(flow_key(source, number), 0);
  if (is_new) {
    found->second = static_cast<std::uint32_t>(outgoing_.size());
    Outgoing& opened = *outgoing_.emplace_back(std::make_unique<Outgoing>(services_, found->second));
    opened.source = source;
    opened.number = number;
  }
  return *outgoing_[found->second];
}

TcpTransport::Incoming& TcpTransport::accept(std::uint32_t source, std::uint32_t number) {
  const auto [found, is_new] = receivers_.try_emplace(flow_key(source, number), 0);
  if (is_new) {
    found->second = static_cast<std::uint32_t>(incoming_.size());
    Incoming& accepted = *incoming_.emplace_back(std::make_unique<Incoming>(services_, found->second));
    accepted.source = source;
    accepted.number = number;
  }
  return *incoming_[found->second];
}

TcpTransport::Outgoing& TcpTransport::sender_of(const Packet& packet) {
  if (packet.sender != no_slot) return *outgoing_[packet.sender];
  return open(packet.destination, packet.number);
}

TcpTransport::Incoming& TcpTransport::receiver_of(const Packet& packet) {
  if (packet.receiver != no_slot) return *incoming_[packet.receiver];
  return accept(packet.source, packet.number);
}

void TcpTransport::receive(Port&, std::uint32_t slot) {
  const Packet& packet = services_.packets[slot];
  const bool is_syn = (packet.flags & tcp_flags::syn) != 0;
  if (packet.kind == Packet::Kind::acknowledgement) return receive_acknowledgement(slot, is_syn);
  if (!is_syn) return receiver_of(packet).receive(slot);
  if (!services_.events.in_scheduling_order()) return receive_syn(slot);
  pdes::Event later = services_.events.make(packet.destination, packet.destination, services_.events.now());
  later.kind = NodeEvents::flow_timer;
  later.reserved = late_syn;
  later.node = slot;
  services_.events.send_here(later);
}

void TcpTransport::receive_syn(std::uint32_t slot) {
  const Packet packet = services_.packets[slot];
  services_.packets.free(slot);
  Incoming& accepted = accept(packet.source, packet.number);
  accepted.destination = packet.destination;
  accepted.ports = packet.ports;
  accepted.other_slot = packet.sender;
  accepted.accept();
}

void TcpTransport::receive_acknowledgement(std::uint32_t slot, bool is_syn) {
  const Packet packet = services_.packets[slot];
  Outgoing& sender = sender_of(packet);
  sender.other_slot = packet.receiver;
  if (is_syn) {
    services_.packets.free(slot);
    return sender.establish(window_of(packet));
  }
  std::array<std::uint64_t, 2 * TcpReceiver::most_blocks> blocks;
  const auto words = services_.packets.words_of(packet);
  std::ranges::copy(words, blocks.begin());
  services_.packets.free(slot);
  sender.receive({.byte = packet.sequence,
                  .window = window_of(packet),
                  .has_echo = (packet.flags & tcp_flags::echo) != 0,
                  .blocks = {blocks.data(), words.size()}});
}

void TcpTransport::expire(const pdes::Event& event) {
  switch (event.reserved) {
    case late_syn:
      return receive_syn(event.node);
    case waking:
      return outgoing_[event.node]->wake();
    case delayed_acknowledgement:
      if (Incoming& connection = *incoming_[event.node]; connection.is_over(event)) connection.expire();
      return;
    default:
      if (Outgoing& connection = *outgoing_[event.node]; connection.is_over(event)) connection.expire();
  }
}

std::vector<ConnectionRecord> TcpTransport::connections() const {
  std::vector<ConnectionRecord> records;
  for (const auto& connection : outgoing_) {
    const TcpSender& sender = connection->sender();
    records.push_back({.source = connection->source,
                       .destination = connection->destination,
                       .number = connection->place,
                       .segments = sender.counts().segments,
                       .repeated = sender.counts().repeated,
                       .timeouts = sender.counts().timeouts,
                       .round_trip = sender.round_trip(),
                       .greatest_window = sender.counts().greatest_window,
                       .acknowledged = sender.unacknowledged() - 1,
                       .offered = sender.tail() - 1,
                       .timeout = sender.timeout()});
  }
  return records;
}

extern const TransportType tcp_transport;
constinit const TransportType tcp_transport{
    .name = "tcp",
    .help = "TCP: the messages of a pair of hosts share connections, and switches drop packets",
    .make = make_transport<TcpTransport>,
    .discipline = "drop-tail",
    .has_connections = true,
};

}  // namespace orrery::network
