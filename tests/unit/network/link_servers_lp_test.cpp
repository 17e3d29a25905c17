// The links of the congestion-aware network as logical processes. A test plays the kernel: it hands the links their
// events in the kernel's order, and keeps what they tell NPUs.
#include "orrery/network/link_servers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "dimension_of.hpp"
#include "fake_scheduler.hpp"
#include "orrery/network/delay_model.hpp"

namespace orrery::network {
namespace {

using topology::Dimension;
using topology::dimension_of;
using topology::Shape;
using topology::Topology;

constexpr std::uint32_t first_link = 1000;  // LP of link 0

constexpr Time at(std::int64_t count) { return Time::from_ns(count); }

/// What an NPU is told.
struct Told {
  std::int64_t ns = 0;
  std::uint32_t npu = 0;
  Delivery what = Delivery::arrived;
  std::uint32_t source = 0;  ///< of an arrival
  std::uint64_t bytes = 0;   ///< of an arrival

  friend bool operator==(const Told&, const Told&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Told& told) {
    return out << "at " << told.ns << " ns NPU " << told.npu << ": " << static_cast<int>(told.what) << " from "
               << told.source << " of " << told.bytes << " B";
  }
};

/// A network on one rank or several, and the events under way in it.
class Network {
 public:
  explicit Network(const std::vector<Dimension>& dimensions, const Options& options = {},
                   std::vector<int> rank_of_npu = {}, const std::vector<topology::LinkFault>& faults = {})
      : topology_(dimensions, links_of(dimensions, faults)) {
    Options chosen = options;
    chosen.model = ModelName("congestion-aware");
    network_ = make_network(topology_, chosen);
    for (std::uint32_t npu = 0; npu < topology_.num_npus(); ++npu)
      of_npu_.emplace_back(rank_of_npu.empty() ? 0 : rank_of_npu[npu]);
    const int num_ranks = std::ranges::max(of_npu_).value() + 1;
    for (int r = 0; r < num_ranks; ++r) {
      Part& part = *parts_.emplace_back(std::make_unique<Part>());
      for (std::uint32_t npu = 0; npu < of_npu_.size(); ++npu)
        if (of_npu_[npu] == Rank(r)) part.npus.emplace_back(npu);
      part.links = network_->on_rank({part.kernel, part.npus, {Rank(r), of_npu_, {}}, LpId(first_link), overrun});
    }
  }

  void send(Time now, const Message& message) { part_of(message.source).links->send(message, call(now, message)); }
  /// Returns whether messages among these NPUs stay on the rank of the first one.
  bool keeps_here(const std::vector<NpuId>& npus) {
    const Rank here = of_npu_[npus.front().index()];
    return network_->keeps_within(npus, [&](NpuId npu) { return of_npu_[npu.index()] == here; });
  }
  void multicast(Time now, const Message& message, std::vector<NpuId> destinations) {
    part_of(message.source).links->multicast(message, std::move(destinations), call(now, message));
  }

  /// Lets all messages pass, in the kernel's order. Returns what NPUs are told, in the order of time, NPU and sender.
  std::vector<Told> run() {
    for (;;) {
      collect();
      if (under_way_.empty()) break;
      const auto next = std::ranges::min_element(
          under_way_, [](const UnderWay& a, const UnderWay& b) { return pdes::before(a.event, b.event); });
      UnderWay one = *next;
      under_way_.erase(next);
      Part& part = *parts_[one.rank.index()];
      if (!one.more.empty()) part.links->unpack(one.event, one.more);
      part.kernel.time = one.event.time;
      if (one.event.stage() == pdes::Stage::server)
        part.links->serve(one.event);
      else
        tell(part, one.event);
    }
    std::ranges::sort(told_, {}, [](const Told& t) { return std::tuple(t.ns, t.npu, t.what, t.source); });
    return std::exchange(told_, {});
  }

  std::vector<LinkRecord> records() const {
    std::vector<LinkRecord> all;
    for (const auto& part : parts_)
      for (const LinkRecord& record : part->links->records()) all.push_back(record);
    std::ranges::sort(all, {}, &LinkRecord::link);
    return all;
  }
  const Topology& topology() const { return topology_; }

  std::optional<Overrun> overrun;
  std::vector<std::uint64_t> woken;  ///< the steps of Delivery::wake

 private:
  struct Part {
    test_support::FakeScheduler kernel;
    std::vector<NpuId> npus;
    std::unique_ptr<MessageNetwork> links;
  };
  struct UnderWay {
    Rank rank;
    pdes::Event event;
    std::vector<std::byte> more;
  };

  static topology::Links links_of(const std::vector<Dimension>& dimensions,
                                  const std::vector<topology::LinkFault>& faults) {
    topology::Links links(dimensions);
    for (const auto& fault : faults) links.add(fault);
    return links;
  }
  Part& part_of(NpuId npu) { return *parts_[of_npu_[npu.index()].index()]; }
  pdes::Event call(Time now, const Message& message) {
    return pdes::Event::make(now, pdes::Stage::server, LpId(message.source.value()), sequence_++, {});
  }
  void collect() {
    for (std::size_t r = 0; r < parts_.size(); ++r) {
      for (const auto& sent : parts_[r]->kernel.sent) {
        EXPECT_EQ(sent.more.empty(), sent.to.index() == r || sent.event.kind == static_cast<int>(Delivery::sent))
            << "a message goes with the event to another rank, and only there";
        under_way_.push_back({sent.to, sent.event, sent.more});
      }
      parts_[r]->kernel.sent.clear();
    }
  }
  void tell(Part& part, const pdes::Event& event) {
    Told told{event.time.ps() / 1000, event.target.value(), static_cast<Delivery>(event.kind)};
    if (told.what == Delivery::wake) woken.push_back(event.detail);
    if (told.what == Delivery::arrived) {
      const Message message = part.links->take(event);
      told.source = message.source.value();
      told.bytes = message.size.count();
    }
    told_.push_back(told);
  }

  Topology topology_;
  std::unique_ptr<const SimulatedNetwork> network_;
  std::vector<Rank> of_npu_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<UnderWay> under_way_;
  std::vector<Told> told_;
  std::uint64_t sequence_ = 0;
};

/// A message of a send. 1000 B take 100 ns on a link of dimension_of, and a hop takes 100 ns.
Message data(std::uint32_t from, std::uint32_t to, std::uint64_t bytes = 1000) {
  return {.source = NpuId(from), .destination = NpuId(to), .size = Bytes(bytes)};
}

Told arrived(std::int64_t at, std::uint32_t npu, std::uint32_t source, std::uint64_t bytes = 1000) {
  return {at, npu, Delivery::arrived, source, bytes};
}
Told sent(std::int64_t at, std::uint32_t npu) { return {at, npu, Delivery::sent}; }

Options cut_through(std::uint64_t packet = 0) {
  Options options;
  options.switching = Switching::cut_through;
  options.packet = Bytes(packet);
  return options;
}

using AllTold = std::vector<Told>;

/// A request of a thread block, which its destination takes note of 50 ns after the last link.
Message request(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, bool passes_data) {
  Message message = data(from, to, bytes);
  message.kind = Message::Kind::request;
  message.step.id = {7, 0};
  message.request.passes_data = passes_data;
  message.request.wants_notice = !passes_data;
  message.request.slot = 3;
  message.request.held = 42;
  message.request.after = at(50);
  return message;
}

// A Switch of 4 that cuts through. A store of 1000 B has left its first link after 100 ns, of which its source is told;
// it is at the switch from 100 ns on, behind the second link at 300 ns, and counts at 350 ns. No other receipt follows.
TEST(LinkServersLp, ARequestIsCutThroughAndItsSourceIsToldThatItHasLeft) {
  Network star({dimension_of(Shape("Switch"), 4)}, cut_through(100));
  star.send(at(0), request(0, 2, 1000, false));
  const Told left{100, 0, Delivery::left};
  EXPECT_EQ(star.run(), (AllTold{left, arrived(350, 2, 0)}));
}

// The same with a word of 10 B (1 ns) that comes to the first link at 30 ns, when a store is in service. The word
// passes it: it is at NPU 2 at 30 + 1 + 200 + 50 ns. A store that comes at 40 ns begins when the link has served both,
// at 101 ns. The word is through the second link long before that.
TEST(LinkServersLp, AWordPassesDataAndDelaysThem) {
  Network star({dimension_of(Shape("Switch"), 4)}, cut_through());
  star.send(at(0), request(0, 1, 1000, false));
  star.send(at(30), request(0, 2, 10, true));
  star.send(at(40), request(0, 2, 1000, false));
  EXPECT_EQ(star.run(), (AllTold{Told{100, 0, Delivery::left}, Told{201, 0, Delivery::left}, arrived(281, 2, 0, 10),
                                 arrived(350, 1, 0), arrived(451, 2, 0)}));
}

// A Ring of 8 stores a message whole at each device: three hops take three times 100 ns + 100 ns. The source is told at
// the same time that its send is over.
TEST(LinkServersLp, AMessageIsStoredAndForwarded) {
  Network ring({dimension_of(Shape("Ring"), 8)});
  ring.send(at(5), data(1, 4));
  EXPECT_EQ(ring.run(), (AllTold{sent(605, 1), arrived(605, 4, 1)}));
}

// A Switch of 4. NPUs 0, 1 and 3 send to NPU 2 at the same time, so their messages come to its link at the same time,
// at 200 ns. They are served in the order of the links that they come from, whoever sent first.
TEST(LinkServersLp, MessagesOfOneMomentAreServedInTheOrderOfTheirSenders) {
  for (const bool backwards : {false, true}) {
    Network star({dimension_of(Shape("Switch"), 4)});
    std::vector<std::uint32_t> senders{0, 1, 3};
    if (backwards) std::ranges::reverse(senders);
    for (const std::uint32_t sender : senders) star.send(at(0), data(sender, 2));
    EXPECT_EQ(star.run(), (AllTold{sent(400, 0), arrived(400, 2, 0), sent(500, 1), arrived(500, 2, 1),
                                   arrived(600, 2, 3), sent(600, 3)}));
  }
}

// A Ring of 4. NPU 0 sends two messages upwards at once: the second one waits 100 ns at the first link, which says so
// in its record. The links that carried nothing have no record.
TEST(LinkServersLp, AMessageWaitsForTheOneBeforeIt) {
  Network ring({dimension_of(Shape("Ring"), 4)});
  ring.send(at(0), data(0, 1));
  ring.send(at(0), data(0, 2));
  EXPECT_EQ(ring.run(), (AllTold{sent(200, 0), arrived(200, 1, 0), sent(500, 0), arrived(500, 2, 0)}));
  const auto records = ring.records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].link, 0U);
  EXPECT_EQ(std::pair(records[0].from, records[0].to), std::pair(std::int64_t{0}, std::int64_t{1}));
  EXPECT_EQ(records[0].statistics.messages, 2U);
  EXPECT_EQ(records[0].statistics.bytes, Bytes(2000));
  EXPECT_EQ(records[0].statistics.queueing, at(100));
  EXPECT_EQ(std::pair(records[1].from, records[1].to), std::pair(std::int64_t{1}, std::int64_t{2}));
  EXPECT_EQ(records[1].statistics.busy, at(100));
}

// With cut-through a message that is alone takes three hops of 100 ns and 100 ns for its bytes, whether it is cut into
// packets or not.
TEST(LinkServersLp, CutThroughPaysForTheBytesOnce) {
  for (const std::uint64_t packet : {0U, 1000U, 300U, 1U}) {
    Network ring({dimension_of(Shape("Ring"), 8)}, cut_through(packet));
    ring.send(at(0), data(1, 4));
    EXPECT_EQ(ring.run(), (AllTold{sent(400, 1), arrived(400, 4, 1)})) << packet;
  }
}

// Between dimensions a message is stored whole, with cut-through too: 200 ns in the Ring, then 100 ns + 2 * 100 ns
// through the Switch.
TEST(LinkServersLp, CutThroughStoresAtTheEndOfADimension) {
  Network two({dimension_of(Shape("Ring"), 2), dimension_of(Shape("Switch"), 2)}, cut_through(250));
  two.send(at(0), data(0, 3));
  EXPECT_EQ(two.run(), (AllTold{sent(500, 0), arrived(500, 3, 0)}));
}

// A Switch of 4, in which NPU 0 has a quarter of the bandwidth: its link takes 1000 B for 400 ns. With cut-through the
// link to NPU 2 is taken as long, from 100 ns on. A message of NPU 1, which comes there at 150 ns, waits until 500 ns.
TEST(LinkServersLp, ALinkIsTakenUntilTheLastByteHasComeFromASlowerLink) {
  Network star({dimension_of(Shape("Switch"), 4)}, cut_through(), {}, {{0, {NpuId(0)}, {0.25, 1}, false}});
  star.send(at(0), data(0, 2));
  star.send(at(50), data(1, 2));
  EXPECT_EQ(star.run(), (AllTold{sent(600, 0), arrived(600, 2, 0), sent(700, 1), arrived(700, 2, 1)}));
}

// A Switch of 4. NPU 0 sends 4000 B to NPU 2, and NPU 1 sends 1000 B there at the same time. In packets of 500 B, which
// take 50 ns, they take turns at the link to NPU 2: the four packets of either are through after 4 * 2 turns, and what
// is left of the long message follows.
TEST(LinkServersLp, PacketsOfDifferentMessagesTakeTurns) {
  Network whole({dimension_of(Shape("Switch"), 4)}, cut_through());
  whole.send(at(0), data(0, 2, 4000));
  whole.send(at(0), data(1, 2, 1000));
  EXPECT_EQ(whole.run(), (AllTold{sent(600, 0), arrived(600, 2, 0, 4000), sent(700, 1), arrived(700, 2, 1)}));
  Network packets({dimension_of(Shape("Switch"), 4)}, cut_through(500));
  packets.send(at(0), data(0, 2, 4000));
  packets.send(at(0), data(1, 2, 1000));
  EXPECT_EQ(packets.run(), (AllTold{sent(400, 1), arrived(400, 2, 1), sent(700, 0), arrived(700, 2, 0, 4000)}));
}

// A Switch of 4 that is oversubscribed by 8 passes half of a link's bandwidth. With cut-through and packets of 100 B a
// message of 1000 B takes 2 hops + 10 ns + 8/4 * 100 ns (docs/network.md).
TEST(LinkServersLp, AnOversubscribedSwitchPassesLess) {
  Dimension star = dimension_of(Shape("Switch"), 4);
  star.oversubscription = 8;
  Network packets({star}, cut_through(100));
  packets.send(at(0), data(3, 1));
  EXPECT_EQ(packets.run(), (AllTold{arrived(410, 1, 3), sent(410, 3)}));
  Network stored({star});
  stored.send(at(0), data(3, 1));
  EXPECT_EQ(stored.run(), (AllTold{arrived(600, 1, 3), sent(600, 3)}));
}

// Switches join the NPUs {0, 1}, {2, 3} and so on, and rings of 4 join {0, 2, 4, 6} and {1, 3, 5, 7}. NPUs 0 to 3 are
// on rank 0. A message from 0 to 3 passes links of 0 and 1, and one from 3 to 0 links of 3 and 2. NPU 6 is elsewhere.
TEST(LinkServersLp, MessagesStayOnARankIfAllNpusWhoseLinksTheyPassAreThere) {
  Network two({dimension_of(Shape("Switch"), 2), dimension_of(Shape("Ring"), 4)}, {}, {0, 0, 0, 0, 1, 1, 1, 1});
  EXPECT_TRUE(two.keeps_here({NpuId(0), NpuId(1)}));
  EXPECT_TRUE(two.keeps_here({NpuId(0), NpuId(3)}));
  EXPECT_TRUE(two.keeps_here({NpuId(4), NpuId(7)}));
  EXPECT_FALSE(two.keeps_here({NpuId(0), NpuId(6)}));
  // From 0 to 3 by way of 1, which is on the other rank.
  Network corner({dimension_of(Shape("Switch"), 2), dimension_of(Shape("Switch"), 2)}, {}, {0, 1, 0, 0});
  EXPECT_TRUE(corner.keeps_here({NpuId(0), NpuId(2)}));
  EXPECT_FALSE(corner.keeps_here({NpuId(0), NpuId(3)}));
  // From 0 to 2 by way of 1.
  Network line({dimension_of(Shape("Ring"), 4)}, {}, {0, 1, 0, 0});
  EXPECT_TRUE(line.keeps_here({NpuId(2), NpuId(3)}));
  EXPECT_FALSE(line.keeps_here({NpuId(0), NpuId(2)}));
}

Message step(std::uint32_t from, std::uint32_t to, std::uint32_t ordinal = 0) {
  Message message = data(from, to);
  message.kind = Message::Kind::step_data;
  message.node = NodeId(77);
  message.step = {.group = GroupId(3), .ordinal = ordinal, .member = from, .id = {4, 5}};
  return message;
}

// The source of a message of a collective is told of its arrival only if it asks for that, with the step that it names.
TEST(LinkServersLp, TheSourceOfAStepIsWokenIfItAsksForThat) {
  Network ring({dimension_of(Shape("Ring"), 4)});
  Message message = step(0, 1);
  ring.send(at(0), message);
  EXPECT_EQ(ring.run(), (AllTold{arrived(200, 1, 0)}));
  message.step.wants_receipt = true;
  message.step.receipt_step = 9;
  ring.send(at(1000), message);
  EXPECT_EQ(ring.run(), (AllTold{{1200, 0, Delivery::wake}, arrived(1200, 1, 0)}));
  EXPECT_EQ(ring.woken, (std::vector<std::uint64_t>{packed({4, 9})}));
}

Message part_of_a_reduction(std::uint32_t from, std::uint32_t ordinal = 0) {
  Message message = step(from, from == 0 ? 1 : 0, ordinal);
  message.combining = {3, Bytes(500)};
  return message;
}

const std::vector<NpuId> three_members{NpuId(0), NpuId(1), NpuId(2)};

// NPUs 0, 1 and 2 of a Switch of 4 send 1000 B each to the switch, which makes one message of 500 B of them for each
// member. NPU 1 sends last, at 300 ns: its part is at the switch at 500 ns, and all members have the result 150 ns
// later.
TEST(LinkServersLp, ASwitchCombinesThePartsOfAllMembers) {
  for (const Options& options : {Options{}, cut_through(), cut_through(100)}) {
    Network star({dimension_of(Shape("Switch"), 4)}, options);
    for (const std::uint32_t member : {0U, 1U, 2U})
      star.multicast(at(member == 1 ? 300 : 0), part_of_a_reduction(member), three_members);
    std::vector<std::int64_t> times;
    for (const Told& told : star.run()) {
      EXPECT_EQ(told.bytes, 500U);
      times.push_back(told.ns);
    }
    const bool is_cut = options.switching == Switching::cut_through;
    EXPECT_EQ(times, (std::vector<std::int64_t>(3, is_cut ? 600 : 650))) << is_cut;
    std::vector<std::uint64_t> bytes;
    for (const LinkRecord& record : star.records()) bytes.push_back(record.statistics.bytes.count());
    EXPECT_EQ(bytes, (std::vector<std::uint64_t>{1000, 500, 1000, 500, 1000, 500}));
  }
}

// Parts of different collectives of a group are not combined, even if they come to the switch alternately. The last
// part of each comes at 300 ns.
TEST(LinkServersLp, ASwitchKeepsCollectivesApart) {
  Network star({dimension_of(Shape("Switch"), 4)});
  for (const std::uint32_t member : {0U, 1U, 2U})
    for (const std::uint32_t ordinal : {0U, 1U})
      star.multicast(at(0), part_of_a_reduction(member, ordinal), three_members);
  std::vector<std::int64_t> times;
  for (const Told& told : star.run()) times.push_back(told.ns);
  EXPECT_EQ(times, (std::vector<std::int64_t>{350, 350, 350, 450, 450, 450}));
}

// Three parts at one link make a message, which has the latest tail of the three. A part at another link keeps
// waiting.
TEST(LinkServersLp, ACombinerCombinesThePartsOfALink) {
  SwitchCombiner combiner;
  Message part = part_of_a_reduction(0);
  part.packet.tail = at(7);
  EXPECT_FALSE(combiner.add(LpId(1), part));
  part.packet.tail = at(3);
  EXPECT_FALSE(combiner.add(LpId(2), part)) << "another link";
  EXPECT_FALSE(combiner.add(LpId(1), part));
  const auto combined = combiner.add(LpId(1), part);
  ASSERT_TRUE(combined);
  EXPECT_EQ(combined->size, Bytes(500));
  EXPECT_EQ(combined->packet.tail, at(7)) << "the latest of the parts";
  EXPECT_FALSE(combiner.empty()) << "a part at the other link waits";
}

// The same messages on one rank, and with the NPUs and their links dealt to three ranks. What NPUs are told is the
// same.
TEST(LinkServersLp, TheAnswerIsTheSameOnSeveralRanks) {
  const std::vector<Dimension> dimensions{dimension_of(Shape("Ring"), 3), dimension_of(Shape("Switch"), 2)};
  for (const Options& options : {Options{}, cut_through(), cut_through(300)}) {
    const auto told = [&](std::vector<int> ranks) {
      Network network(dimensions, options, std::move(ranks));
      for (std::uint32_t npu = 0; npu < 6; ++npu)
        for (const std::uint32_t distance : {1U, 3U, 4U}) network.send(at(npu), data(npu, (npu + distance) % 6));
      return network.run();
    };
    const AllTold alone = told({});
    EXPECT_EQ(alone.size(), 36U);
    EXPECT_EQ(told({0, 1, 2, 2, 1, 0}), alone);
  }
}

// A message on which a link would be busy beyond the range of time is reported with its source and node, and is gone.
TEST(LinkServersLp, AMessageThatLeavesTheRangeOfTimeIsReported) {
  Network slow({dimension_of(Shape("Ring"), 4, 1e-9)});
  Message message = data(2, 3, std::uint64_t{1} << 62U);
  message.node = NodeId(8);
  slow.send(at(3), message);
  EXPECT_TRUE(slow.run().empty());
  ASSERT_TRUE(slow.overrun);
  EXPECT_EQ(*slow.overrun, (Overrun{at(3), NpuId(2), NodeId(8)}));
}

// A message that is alone takes with cut-through what the congestion-unaware network says, between any two NPUs of a
// dimension of any shape of the registry that both networks have.
TEST(LinkServersLp, AMessageAloneTakesTheDelayOfTheOtherNetwork) {
  for (const Shape shape : Shape::all()) {
    if (shape->is_of_links_only || !shape->parameters.empty()) continue;
    for (const std::uint32_t size : {2U, 4U, 8U}) {
      const DelayModel delays(Topology({dimension_of(shape, size)}));
      for (std::uint32_t to = 1; to < size; ++to) {
        Network network({dimension_of(shape, size)}, cut_through());
        network.send(at(0), data(0, to));
        const AllTold told = network.run();
        ASSERT_EQ(told.size(), 2U);
        EXPECT_EQ(at(told.back().ns), delays.delay(NpuId(0), NpuId(to), Bytes(1000))) << shape.name() << " to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::network
