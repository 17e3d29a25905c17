// TCP: segments, senders and receivers of one connection without a network, congestion controls, and the rules for
// queues of switches on small graphs.
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "orrery/network/flow_run.hpp"
#include "packet/transports/tcp_receiver.hpp"
#include "packet/transports/tcp_sender.hpp"

namespace orrery::network {
namespace {

constexpr std::uint32_t mss = 1000;
constexpr Time one_us = Time::from_ns(1000);

/// Keeps what a sender sends.
class SentSegments final : public TcpOutput {
 public:
  using Segment = std::pair<std::uint64_t, std::uint32_t>;

  Time now() const override { return time; }
  void send_syn() override { ++num_syns; }
  void send_handshake() override {}
  void send_segment(std::uint64_t first, std::uint32_t length, bool) override { sent.emplace_back(first, length); }
  void set_timer(Time at) override { due = at; }
  void wake_soon() override { wakes = true; }
  std::vector<Segment> take() { return std::exchange(sent, {}); }

  Time time, due = Time::max();
  int num_syns = 0;
  bool wakes = false;
  std::vector<Segment> sent;
};

TcpRules rules_of_test() {
  TcpRules rules;
  rules.mss = mss;
  rules.initial_window = 4;
  rules.min_rto = Time::from_ns(5'000'000);
  return rules;
}

/// A sender whose connection is open after a round trip of 100 us.
struct OpenSender {
  explicit OpenSender(std::string_view control, std::uint64_t bytes)
      : sender(rules, ControlName(control)->make_tcp(), output) {
    sender.offer(bytes);
    output.time = one_us * 100;
    sender.establish(1'000'000);
  }
  void receive(std::uint64_t byte, std::vector<std::uint64_t> blocks = {}, bool has_echo = false) {
    sender.receive({.byte = byte, .window = 1'000'000, .has_echo = has_echo, .blocks = blocks});
  }

  TcpRules rules = rules_of_test();
  SentSegments output;
  TcpSender sender;
};

using Segments = std::vector<SentSegments::Segment>;

// A segment is lost when three segments behind it have come. What was sent again counts as under way again.
TEST(TcpSegments, AreLostBehindThreeThatCame) {
  TcpSegments segments(mss);
  for (int i = 0; i < 6; ++i) segments.append(mss, Time::zero());
  EXPECT_EQ(segments.take_block(2001, 4001), 2000U);
  segments.find_lost();
  EXPECT_FALSE(segments.first_lost());
  EXPECT_EQ(segments.take_block(2001, 5001), 1000U);
  segments.find_lost();
  EXPECT_EQ(segments.first_lost(), 0U);
  EXPECT_EQ(segments.flight(), 1000U);  // only the last is neither lost nor there
  segments.repeat(0);
  EXPECT_EQ(segments.first_lost(), 1U);
  EXPECT_EQ(segments.flight(), 2000U);
  EXPECT_TRUE(segments.is_lost_from(1001));
  EXPECT_FALSE(segments.is_lost_from(5001));
}

// A block counts for whole segments only, also where segments have other lengths.
TEST(TcpSegments, TakeBlocksOfWholeSegments) {
  TcpSegments segments(mss);
  for (const std::uint32_t length : {1000U, 10U, 20U, 1000U, 1000U}) segments.append(length, Time::zero());
  EXPECT_EQ(segments.take_block(1001, 1040), 30U);
  EXPECT_EQ(segments.take_block(1001, 2031), 1000U);
  EXPECT_EQ(segments.take_block(1001, 2031), 0U);
  const TcpSegments::Covered covered = segments.acknowledge(1031);
  EXPECT_EQ(covered.delivered, 1000U);
  EXPECT_EQ(segments.flight(), 1000U);
}

// Of what an acknowledgement covers, only a segment that was not sent again gives a round trip.
TEST(TcpSegments, SayWhetherTheOldestWasSentOnce) {
  TcpSegments segments(mss);
  segments.append(mss, one_us);
  segments.append(mss, one_us * 2);
  segments.repeat(0);
  EXPECT_FALSE(segments.acknowledge(1001).is_sent_once);
  const TcpSegments::Covered covered = segments.acknowledge(2001);
  EXPECT_TRUE(covered.is_sent_once);
  EXPECT_EQ(covered.sent, one_us * 2);
}

// The first window has four segments. Each acknowledgement of two lets out three: one more than was acknowledged.
TEST(TcpSender, DoublesItsWindowEachRoundTrip) {
  OpenSender one("newreno", 20'000);
  EXPECT_EQ(one.output.take(), (Segments{{1, mss}, {1001, mss}, {2001, mss}, {3001, mss}}));
  one.output.time = one_us * 200;
  one.receive(2001);
  EXPECT_EQ(one.output.take(), (Segments{{4001, mss}, {5001, mss}, {6001, mss}}));
  EXPECT_EQ(one.sender.round_trip(), one_us * 100);
  EXPECT_EQ(one.sender.timeout(), Time::from_ns(5'000'000));
}

// RFC 6298: a first round trip of 100 us gives a variation of 50 us; the second one, of 180 us, moves both.
TEST(TcpSender, SmoothsRoundTrips) {
  OpenSender one("newreno", 20'000);
  one.output.time = one_us * 280;
  one.receive(1001);
  EXPECT_EQ(one.sender.round_trip(), one_us * 110);
  // 110 us + 4 (50 us x 3 / 4 + 80 us / 4) = 340 us, below the least time-out
  EXPECT_EQ(one.sender.timeout(), Time::from_ns(5'000'000));
}

// The third acknowledgement with a block begins recovery: the head goes again at once, and the threshold is half of
// what was under way. PRR then lets out as much as comes while less is under way than the threshold.
TEST(TcpSender, RecoversFromALossByDuplicates) {
  OpenSender one("newreno", 30'000);
  one.output.take();
  for (std::uint64_t byte = 1001; byte <= 4001; byte += 1000) one.receive(byte);
  EXPECT_EQ(one.output.take().size(), 8U);  // eight segments are under way
  one.receive(4001, {5001, 6001});
  one.receive(4001, {5001, 7001});
  EXPECT_EQ(one.output.take().size(), 2U);
  one.receive(4001, {5001, 8001});
  const Segments sent = one.output.take();
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent.front(), (SentSegments::Segment{4001, mss}));
  EXPECT_EQ(one.sender.counts().repeated, 1U);
}

// After a time-out all that is not known to be there counts as lost, the window is one segment, and the time-out
// doubles.
TEST(TcpSender, BeginsAgainAfterATimeout) {
  OpenSender one("newreno", 20'000);
  one.output.take();
  EXPECT_EQ(one.output.due, one_us * 5100);
  one.output.time = one.output.due;
  one.sender.expire();
  EXPECT_EQ(one.output.take(), (Segments{{1, mss}}));
  EXPECT_EQ(one.output.due, one_us * 15'100);
  EXPECT_EQ(one.sender.counts().timeouts, 1U);
}

// A SYN without an answer is repeated after 1, 3, 7, ... seconds, six times.
TEST(TcpSender, RepeatsItsSynAndGivesUp) {
  const TcpRules rules = rules_of_test();
  SentSegments output;
  TcpSender sender(rules, ControlName("cubic")->make_tcp(), output);
  sender.offer(1000);
  EXPECT_EQ(output.due, Time::from_ns(1'000'000'000));
  while (output.due != Time::max() && output.num_syns < 20) {
    output.time = std::exchange(output.due, Time::max());
    sender.expire();
  }
  EXPECT_EQ(output.num_syns, 7);
  EXPECT_EQ(sender.counts().timeouts, 6U);
}

// Messages that come to an open connection are sent a unit of time later.
TEST(TcpSender, WakesForALaterMessage) {
  OpenSender one("newreno", 1000);
  one.receive(1001);
  one.output.take();
  one.sender.offer(500);
  EXPECT_TRUE(one.output.wakes);
  EXPECT_TRUE(one.output.take().empty());
  one.sender.wake();
  EXPECT_EQ(one.output.take(), (Segments{{1001, 500}}));
}

/// Keeps the acknowledgements of a receiver.
class Answers final : public TcpReplies {
 public:
  struct Answer {
    std::uint64_t byte = 0;
    bool has_echo = false;
    std::vector<std::uint64_t> blocks;
    friend bool operator==(const Answer&, const Answer&) = default;
  };

  Time now() const override { return {}; }
  void acknowledge(std::uint64_t byte, std::uint64_t window, bool has_echo,
                   std::span<const std::uint64_t> blocks) override {
    answers.push_back({byte, has_echo, {blocks.begin(), blocks.end()}});
    last_window = window;
  }
  void set_timer(Time at) override { due = at; }
  void deliver() override { ++num_deliveries; }
  std::vector<Answer> take() { return std::exchange(answers, {}); }

  std::vector<Answer> answers;
  Time due = Time::max();
  std::uint64_t last_window = 0;
  int num_deliveries = 0;
};

struct TestReceiver {
  explicit TestReceiver(const TcpRules& given = rules_of_test(), bool uses_marks = false)
      : rules(given), receiver(rules, uses_marks) {}
  std::vector<Answers::Answer> take(std::uint64_t first, bool is_marked = false) {
    receiver.receive({.first = first, .length = mss, .is_marked = is_marked}, answers);
    return answers.take();
  }

  TcpRules rules;
  TcpReceiver receiver;
  Answers answers;
};

using AllAnswers = std::vector<Answers::Answer>;

// The first segment is acknowledged at once, then every second one, or the first one after the time-out.
TEST(TcpReceiver, AcknowledgesEverySecondSegment) {
  TestReceiver one;
  EXPECT_EQ(one.take(1), (AllAnswers{{1001, false, {}}}));
  EXPECT_TRUE(one.take(1001).empty());
  EXPECT_EQ(one.answers.due, Time::from_ns(1'000'000));
  EXPECT_EQ(one.take(2001), (AllAnswers{{3001, false, {}}}));
  EXPECT_EQ(one.answers.due, Time::max());
  EXPECT_TRUE(one.take(3001).empty());
  one.receiver.expire(one.answers);
  EXPECT_EQ(one.answers.take(), (AllAnswers{{4001, false, {}}}));
}

// The block that grew goes first. A fifth block is forgotten, and does not come back whole when it grows.
TEST(TcpReceiver, ReportsTheLastFourBlocks) {
  TestReceiver one;
  one.take(1);
  one.take(2001);
  one.take(4001);
  one.take(6001);
  EXPECT_EQ(one.take(8001), (AllAnswers{{1001, false, {8001, 9001, 6001, 7001, 4001, 5001, 2001, 3001}}}));
  EXPECT_EQ(one.take(10'001), (AllAnswers{{1001, false, {10'001, 11'001, 8001, 9001, 6001, 7001, 4001, 5001}}}));
  EXPECT_EQ(one.take(3001), (AllAnswers{{1001, false, {3001, 5001, 10'001, 11'001, 8001, 9001, 6001, 7001}}}));
  EXPECT_EQ(one.take(1001), (AllAnswers{{5001, false, {10'001, 11'001, 8001, 9001, 6001, 7001}}}));
  EXPECT_EQ(one.receiver.expected(), 5001U);
  EXPECT_EQ(one.answers.num_deliveries, 2);  // segments in order: the first one, and the one that fills the gap
}

// A window is offered in multiples of the least power of two by which it fits into 16 bits.
TEST(TcpReceiver, CutsItsWindowToTheScale) {
  TcpRules rules = rules_of_test();
  rules.least_buffer = rules.most_buffer = 400'001;
  TestReceiver one(rules);
  EXPECT_EQ(one.receiver.first_window(), 65'535U);
  one.take(1);
  EXPECT_EQ(one.answers.last_window, 400'000U);
}

// With 20 kB at first, a window that has come raises the buffer to twice of that and 16 segments, up to the most.
TEST(TcpReceiver, RaisesItsBuffer) {
  TcpRules rules = rules_of_test();
  rules.least_buffer = 20'000;
  rules.most_buffer = 60'000;
  TestReceiver one(rules);
  for (std::uint64_t i = 0; i < 20; ++i) one.take(1 + i * mss);
  EXPECT_EQ(one.answers.last_window, 20'000U);  // as of the acknowledgement of the 19th segment
  one.take(20'001);
  EXPECT_EQ(one.answers.last_window, 56'000U);
  for (std::uint64_t i = 21; i < 80; ++i) one.take(1 + i * mss);
  EXPECT_EQ(one.answers.last_window, 60'000U);
}

// DCTCP: where a segment waits, one with another mark first sends what was known before the one that waits, with the
// old mark, as ns-3 does.
TEST(TcpReceiver, AcknowledgesBeforeAMarkChanges) {
  TestReceiver one(rules_of_test(), true);
  one.take(1);
  EXPECT_TRUE(one.take(1001).empty());
  EXPECT_EQ(one.take(2001, true), (AllAnswers{{1001, false, {}}}));
  EXPECT_EQ(one.take(3001, true), (AllAnswers{{4001, true, {}}}));
}

TcpWindow window_of(std::uint64_t segments, std::uint64_t threshold) {
  TcpWindow window;
  window.mss = mss;
  window.cwnd = segments * mss;
  window.ssthresh = threshold * mss;
  return window;
}

// After a loss, NewReno keeps half of what was under way, at least two segments, and CUBIC 0.7 of the window. DCTCP
// halves the window at first.
TEST(TcpControls, ReduceTheirWindows) {
  const TcpWindow window = window_of(100, 1000);
  EXPECT_EQ(ControlName("newreno")->make_tcp()->reduced(window, 80'000), 40'000U);
  EXPECT_EQ(ControlName("newreno")->make_tcp()->reduced(window, 3000), 2000U);
  EXPECT_EQ(ControlName("cubic")->make_tcp()->reduced(window, 80'000), 70'000U);
  EXPECT_EQ(ControlName("dctcp")->make_tcp()->reduced(window, 80'000), 50'000U);  // alpha is 1 at first
}

// With a round trip without marks, alpha falls by a sixteenth.
TEST(TcpControls, DctcpFollowsTheShareOfMarks) {
  const auto control = ControlName("dctcp")->make_tcp();
  TcpWindow window = window_of(100, 10);
  window.next = 1001;
  window.acknowledged = 1001;
  control->acknowledge(window, {.now = {}, .segments = 1, .has_echo = false, .round_trip = {}});
  EXPECT_EQ(control->reduced(window, 0), 53'125U);  // (1 - 15/32) of 100 segments
  control->acknowledge(window, {.now = {}, .segments = 1, .has_echo = true, .round_trip = {}});
  EXPECT_EQ(control->reduced(window, 0), 52'929U);  // alpha is 225/256 + 1/16
}

// In congestion avoidance NewReno adds mss^2 / cwnd, and CUBIC at first one segment for each 20 without a loss.
TEST(TcpControls, GrowInCongestionAvoidance) {
  TcpWindow window = window_of(10, 5);
  ControlName("newreno")->make_tcp()->increase(window, 2, {});
  EXPECT_EQ(window.cwnd, 10'100U);
  window = window_of(10, 5);
  const auto cubic = ControlName("cubic")->make_tcp();
  cubic->increase(window, 19, {});
  EXPECT_EQ(window.cwnd, 10'000U);
  cubic->increase(window, 1, {});
  EXPECT_EQ(window.cwnd, 11'000U);
}

/// Hosts 0 to n - 1 that send to host n over one switch at 10 Gb/s, with a delay of 1 us.
FlowScenario incast(std::uint32_t senders, std::uint64_t bytes) {
  FlowScenario scenario;
  for (std::uint32_t h = 0; h <= senders; ++h) scenario.graph.add_host();
  scenario.graph.add_switch({});
  for (std::uint32_t h = 0; h <= senders; ++h) scenario.graph.add_link({h, senders + 1, 10'000'000'000, one_us});
  scenario.rules.transport = TransportName("tcp");
  scenario.rules.control = ControlName("newreno");
  scenario.rules.tcp.min_rto = Time::from_ns(5'000'000);
  scenario.rules = scenario.rules.with_sizes();
  for (std::uint32_t h = 0; h < senders; ++h)
    scenario.flows.push_back({.source = h, .destination = senders, .bytes = bytes, .ports = h});
  return scenario;
}

std::uint64_t drops_of(const FlowResults& results) {
  std::uint64_t sum = 0;
  for (const PortRecord& port : results.ports) sum += port.drops;
  return sum;
}

// SYN and SYN-ACK of 50 B take 40 ns on each of two links and 2 us of delay. The last packet of the handshake, 42 B,
// leaves before 1,042 B of data, which take 833.6 ns on each link: 2 x 2.08 + 0.0336 + 2 x 0.8336 + 2 us.
TEST(TcpFlows, TakeAHandshakeAndTheirData) {
  const auto world = parallel::make_serial();
  const FlowResults results = run_flows(incast(1, 1000), *world);
  EXPECT_EQ(results.flows[0].received, Time::from_ps(7'860'800));
}

// A queue of 150 kB has no room for nine first windows of 200 segments each.
TEST(TcpFlows, LoseWhatAQueueHasNoRoomFor) {
  const auto world = parallel::make_serial();
  FlowScenario scenario = incast(9, 292'000);
  scenario.rules.tcp.initial_window = 200;
  const FlowResults results = run_flows(scenario, *world);
  EXPECT_GT(drops_of(results), 0U);
  for (const FlowTimes& flow : results.flows) EXPECT_GE(flow.acknowledged, flow.received);
  for (const PortRecord& port : results.ports)
    if (port.node == 10) {
      EXPECT_LE(port.deepest_queue, 150'000U);
    }
  scenario.rules.queue = 10'000'000;
  EXPECT_EQ(drops_of(run_flows(scenario, *world)), 0U);
}

// DCTCP keeps a queue near its threshold, so that nothing is lost.
TEST(TcpFlows, MarkInPlaceOfDropping) {
  const auto world = parallel::make_serial();
  FlowScenario scenario = incast(4, 5'000'000);
  scenario.rules.control = ControlName("dctcp");
  scenario.rules.discipline = DisciplineName("red");
  scenario.rules.marks = {{SwitchRules::any_rate, {30'000, 30'000, 1}}};
  const FlowResults results = run_flows(scenario, *world);
  std::uint64_t marks = 0;
  for (const PortRecord& port : results.ports) marks += port.marks;
  EXPECT_GT(marks, 0U);
  EXPECT_EQ(drops_of(results), 0U);
}

}  // namespace
}  // namespace orrery::network
