// The parts of the packet network alone: ports, queues and switching between stubs of the kernel and of a transport.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "fake_scheduler.hpp"
#include "packet/port_observer.hpp"
#include "packet/ports/shared_buffers.hpp"
#include "packet/switching/switching.hpp"

namespace orrery::network {
namespace {

constexpr Time delay_of_a_link = Time::from_ns(1000);
constexpr Time time_of_a_packet = Time::from_ps(82'880);  // 1,036 B at 100 Gb/s

/// Hosts that send the given packets and keep what they get.
class StubHosts final : public HostTransport {
 public:
  void send(const FlowRequest&) override {}
  std::uint32_t next(Port&) override {
    if (waiting.empty()) return no_slot;
    const std::uint32_t slot = waiting.front();
    waiting.pop_front();
    return slot;
  }
  bool has_work(const Port&) const override { return !waiting.empty(); }
  void receive(Port&, std::uint32_t slot) override { received.push_back(slot); }
  void expire(const pdes::Event&) override {}
  std::size_t num_waiting() const override { return waiting.size(); }
  void begin_saving() override {}
  void serialize(std::uint32_t, Archive&) override {}

  std::deque<std::uint32_t> waiting;
  std::vector<std::uint32_t> received;
};

class StubUser final : public PacketUser {
 public:
  void received(const FlowId&) override {}
  void acknowledged(const FlowId&) override {}
  void told_acknowledged(const FlowId&) override {}
  void reduced(std::uint32_t, std::uint32_t, std::uint64_t, const LastArrival&) override {}
  void wake(const pdes::Event&) override {}
};

class CountingObserver final : public PortObserver {
 public:
  void enqueues(const Port&, const Packet&) override { ++enqueued; }
  void dequeued(const Port&, const Packet&) override { ++left; }
  void transmits(const Port&, const Packet&) override { ++transmitted; }

  int enqueued = 0, left = 0, transmitted = 0;
};

/// Hosts 0 and 1 at ports 0 and 1 of switch 2, over links of 100 Gb/s and 1 us.
class Star {
 public:
  explicit Star(const PacketRules& its_rules = {}, Bytes buffer = Bytes(1U << 25U)) : rules(its_rules) {
    graph.add_host();
    graph.add_host();
    graph.add_switch(buffer);
    for (const std::uint32_t host : {0U, 1U}) graph.add_link({host, 2, 100'000'000'000, delay_of_a_link});
    router.emplace(graph, std::span<const LinkFailure>{}, RouteRules{});
    system.emplace(PacketSystem{graph, rules, *router, {}});
    events.emplace(PacketPart{scheduler, Rank(0), of_node, LpId(0)}, 3);
    ports.emplace(*system, *events, packets);
    hops.emplace(*system, *events, *ports);
    const NodeServices services{*system, *events, packets, *ports, *hops, user};
    queues.emplace(services);
    switching.emplace(services, *queues, hosts, nullptr);
    ports->connect(*queues, hosts, observer);
  }

  /// Returns the slot of a full data packet from host 0 to host 1.
  std::uint32_t packet() {
    Packet made;
    made.destination = 1;
    made.size = 1036;
    return packets.put(made);
  }
  /// Returns the events of a kind for a node.
  std::vector<pdes::Event> sent(std::uint16_t kind, std::uint32_t node) const {
    std::vector<pdes::Event> found;
    for (const auto& sent : scheduler.sent)
      if (sent.event.kind == kind && sent.event.target == LpId(node)) found.push_back(sent.event);
    return found;
  }

  PacketRules rules;
  PacketGraph graph;
  std::optional<PacketRouter> router;
  std::optional<PacketSystem> system;
  std::vector<Rank> of_node = std::vector<Rank>(3, Rank(0));
  test_support::FakeScheduler scheduler;
  std::optional<NodeEvents> events;
  PacketStore packets;
  std::optional<Ports> ports;
  std::optional<NextHops> hops;
  StubUser user;
  StubHosts hosts;
  CountingObserver observer;
  std::optional<SharedBuffers> queues;
  std::optional<PacketSwitching> switching;
};

// Three packets come to a switch at time 0. The first leaves at once. The end of its transmission is one event, because
// the others wait. The second leaves then.
TEST(PacketParts, EndsOfTransmissionsAreEventsIfPacketsWait) {
  Star star;
  star.switching->arrive(2, 0, star.packet());
  ASSERT_EQ(star.sent(NodeEvents::arrival, 1).size(), 1U);
  EXPECT_EQ(star.sent(NodeEvents::arrival, 1)[0].time, time_of_a_packet + delay_of_a_link);
  EXPECT_TRUE(star.sent(NodeEvents::transmission_end, 2).empty());
  star.switching->arrive(2, 0, star.packet());
  star.switching->arrive(2, 0, star.packet());
  ASSERT_EQ(star.sent(NodeEvents::transmission_end, 2).size(), 1U);
  EXPECT_EQ(star.sent(NodeEvents::transmission_end, 2)[0].time, time_of_a_packet);
  EXPECT_EQ(star.ports->num_waiting(), 2U);
  star.scheduler.time = time_of_a_packet;
  star.ports->end_transmission(star.ports->at(2, 1));
  EXPECT_EQ(star.sent(NodeEvents::arrival, 1).size(), 2U);
  EXPECT_EQ(star.ports->num_waiting(), 1U);
  EXPECT_EQ(star.observer.enqueued, 3);
  EXPECT_EQ(star.observer.left, 2);
  EXPECT_EQ(star.observer.transmitted, 2);
}

// A host has two packets, and its port is free. The transport gives the first one; the second one waits for the end.
TEST(PacketParts, HostsSendWhatTheirTransportGives) {
  Star star;
  star.hosts.waiting = {star.packet(), star.packet()};
  star.ports->kick(star.ports->at(0, 0));
  EXPECT_EQ(star.sent(NodeEvents::arrival, 2).size(), 1U);
  EXPECT_EQ(star.sent(NodeEvents::transmission_end, 0).size(), 1U);
  EXPECT_EQ(star.hosts.waiting.size(), 1U);
}

// A packet for host 1 and one for host 0 come to host 1. The transport gets the first; the other finds no route.
TEST(PacketParts, TransportsGetThePacketsOfTheirHost) {
  Star star;
  const std::uint32_t own = star.packet(), other = star.packet();
  star.packets[other].destination = 0;
  star.switching->arrive(1, 0, own);
  EXPECT_EQ(star.hosts.received, std::vector<std::uint32_t>{own});
  star.switching->arrive(1, 0, other);
  EXPECT_EQ(star.hosts.received.size(), 1U);
}

// The ports of a switch share 1,036 B. One packet fills them, so that its peer gets a pause. The packet leaves at once,
// and the frame that ends the pause waits until the first frame has left.
TEST(PacketParts, FullBuffersPauseTheirPeer) {
  PacketRules rules;
  rules.reserve = 0;
  rules.share_shift = 0;
  rules.headroom = 2000;
  Star star(rules, Bytes(2 * 2000 + 1036));
  star.switching->arrive(2, 0, star.packet());
  const auto to_peer = star.sent(NodeEvents::arrival, 0);
  ASSERT_EQ(to_peer.size(), 1U);
  EXPECT_EQ(star.packets[to_peer[0].node].kind, Packet::Kind::pause);
  EXPECT_EQ(star.ports->at(2, 0).frames.size, 1U);
  EXPECT_EQ(star.ports->buffer(2).used, 0);
  star.switching->arrive(0, 0, to_peer[0].node);
  EXPECT_TRUE(star.ports->at(0, 0).is_paused);
  EXPECT_EQ(star.ports->at(0, 0).done.pauses, 1U);
  EXPECT_EQ(star.queues->find_leak(false), "");
}

// Two packets wait behind one that a switch sends when the link fails. They are lost, and so is the next one that comes
// by the link.
TEST(PacketParts, FailedLinksLoseTheirPackets) {
  Star star;
  for (int i = 0; i < 3; ++i) star.switching->arrive(2, 0, star.packet());
  star.switching->fail_link(2, 1);
  EXPECT_EQ(star.ports->at(2, 1).done.drops, 2U);
  EXPECT_EQ(star.ports->num_waiting(), 0U);
  EXPECT_TRUE(star.ports->has_failed_link());
  star.switching->arrive(2, 1, star.packet());
  EXPECT_EQ(star.ports->at(2, 1).done.drops, 3U);
  EXPECT_EQ(star.packets.size(), 1U);
}

// A packet with telemetry goes to another rank and comes back as bytes, and loses its slots in a checkpoint.
TEST(PacketParts, PacketsTravelAsBytes) {
  PacketStore store;
  Packet packet;
  packet.sender = 7;
  packet.sequence = 12;
  const std::uint32_t slot = store.put(packet);
  store.telemetry_of(store[slot]).num_hops = 3;
  PacketStore::Bytes bytes;
  store.write(slot, bytes);
  const std::uint32_t copy = store.put_bytes(bytes.span());
  EXPECT_EQ(store[copy].sender, 7U);
  ASSERT_NE(store.find_telemetry(store[copy]), nullptr);
  EXPECT_EQ(store.find_telemetry(store[copy])->num_hops, 3U);
  const std::uint32_t restored = store.put_bytes(store.saved(slot));
  EXPECT_EQ(store[restored].sender, no_slot);
  EXPECT_EQ(store[restored].sequence, 12U);
  EXPECT_EQ(store.size(), 3U);
}

}  // namespace
}  // namespace orrery::network
