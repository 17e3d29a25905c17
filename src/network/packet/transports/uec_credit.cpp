// Receiver credit congestion control: a receiver gives credit to its senders in turn, at nearly the rate of its link.
#include <algorithm>

#include "uec.hpp"

namespace orrery::network {
namespace {

constexpr double share_of_rate = 0.99;

}  // namespace

void UecTransport::take_target(UecSink& sink, std::int32_t target) {
  if (run_.by_credit && sink.want(target)) begin_pulling(sink);
}

void UecTransport::begin_pulling(UecSink& sink) {
  if (!run_.by_credit || sink.notes.queue == UecSink::Queue::active || sink.is_over()) return;
  Port& port = services_.ports.at(sink.flow().destination, sink.port());
  sink.notes.queue = UecSink::Queue::active;
  nic(port).pulled.push_back(flow_key(sink.flow().source, sink.flow().number));
  if (!nic(port).is_pulling) pull(port);
}

/// Gives credit to the next sink, and again later. Sinks whose senders want no more get up to a window beyond that
/// while no others want any.
void UecTransport::pull(Port& port) {
  Nic& there = nic(port);
  there.is_pulling = false;
  const std::int32_t units = run_.credit_per_pull();
  while (!there.pulled.empty() || !there.idle.empty()) {
    const bool is_active = !there.pulled.empty();
    auto& queue = is_active ? there.pulled : there.idle;
    const std::uint64_t key = queue.front();
    queue.pop_front();
    const auto found = sinks_.find(key);
    if (found == sinks_.end()) continue;
    UecSink& sink = found->second;
    const auto expected = is_active ? UecSink::Queue::active : UecSink::Queue::idle;
    if (sink.notes.queue != expected) continue;  // it has changed queues since
    sink.notes.queue = UecSink::Queue::none;
    if (sink.is_over()) continue;
    send_credit(sink, units);
    if (sink.wanted() > 0) {
      sink.notes.queue = UecSink::Queue::active;
      there.pulled.push_back(key);
    } else if (-sink.wanted() < run_.most_credit(run_.nscc_at(port.rate)) / UecRun::credit_unit) {
      sink.notes.queue = UecSink::Queue::idle;
      there.idle.push_back(key);
    }
    const double bits = static_cast<double>(units * UecRun::credit_unit * 8);
    const PacketGraph& graph = services_.system.graph;
    const auto rate = static_cast<double>(graph.way_into(graph.ports(port.node)[port.number]).rate);
    const auto period = static_cast<std::int64_t>(bits * 1e12 / rate / share_of_rate);
    NodeEvents& events = services_.events;
    pdes::Event next =
        events.make(port.node, port.node, events.now() + Time::from_ps(std::max<std::int64_t>(period, 1)));
    next.kind = NodeEvents::flow_timer;
    next.reserved = pulling;
    next.node = port.number;
    events.send_here(next);
    there.is_pulling = true;
    return;
  }
}

void UecTransport::send_credit(UecSink& sink, std::int32_t units) {
  Packet packet;
  packet.kind = Packet::Kind::credit;
  packet.source = sink.flow().destination;
  packet.destination = sink.flow().source;
  packet.flow = sink.flow().number;
  packet.size = run_.rules.acknowledgement;
  packet.sequence = static_cast<std::uint64_t>(sink.give(units));
  packet.ports = static_cast<std::uint32_t>(packet.sequence) << 16U | sink.flow().number % Entropies::count;
  send_control(services_.packets.put(packet));
}

}  // namespace orrery::network
