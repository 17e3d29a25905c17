// The script of a collective, played message by message by the members of the executor over links that are never taken,
// gives what the engine's recurrences give.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "orrery/collective/member_run.hpp"
#include "orrery/collective/message_program.hpp"
#include "random_case.hpp"
#include "random_custom_collective.hpp"

namespace orrery::collective::test {
namespace {

/// All members of one collective, with the delays.
class Play {
 public:
  Play(const RandomCase& sample, const network::DelayModel& delays, std::shared_ptr<const MessageProgram> script)
      : sample_(sample), delays_(delays), completions_(delays.topology().num_npus()) {
    for (std::uint32_t m = 0; m < delays.topology().num_npus(); ++m)
      members_.emplace_back(script, m, sample.options.rendezvous);
  }

  std::vector<Time> run(const std::vector<Time>& arrivals) {
    for (std::uint32_t m = 0; m < arrivals.size(); ++m)
      at(arrivals[m], m, [this, m](auto& hands) { members_[m].begin(hands.now, hands); });
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      Hands hands(*this, event.member, event.time);
      const bool was_done = members_[event.member].is_done();
      event.action(hands);
      if (members_[event.member].is_done() && !was_done) completions_[event.member] = event.time;
    }
    for (const MemberRun& member : members_) {
      EXPECT_TRUE(member.is_done());
      EXPECT_FALSE(member.is_asked_for_more());
    }
    return completions_;
  }
  Bytes sent() const { return sent_; }

 private:
  struct Hands final : CollectiveTransport {
    Play& play;
    std::uint32_t me;
    Time now;

    Hands(Play& of, std::uint32_t member, Time time) : play(of), me(member), now(time) {}
    void send(std::uint32_t to, Bytes size, network::StepId step, Payload what, std::uint32_t own_step) override;
    void send_to_switch(std::span<const MessageProgram::Receiver> members, Bytes size, Bytes result,
                        network::StepId step, Payload what) override;
    void wake(network::StepId step, Time time) override;
  };
  using Action = std::function<void(Hands&)>;
  struct Event {
    Time time;
    std::uint64_t order = 0;
    std::uint32_t member = 0;
    Action action;
    bool operator>(const Event& other) const { return std::pair(time, order) > std::pair(other.time, other.order); }
  };

  void at(Time time, std::uint32_t member, Action action) { events_.push({time, order_++, member, std::move(action)}); }

  const RandomCase& sample_;
  const network::DelayModel& delays_;
  std::vector<MemberRun> members_;
  std::vector<Time> completions_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Bytes sent_;
  /// Of a switch for a member, by member, service and step.
  struct Parts {
    std::uint32_t count = 0;
    Time last;
    Bytes size;
  };
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Parts> parts_;
};

void Play::Hands::send(std::uint32_t to, Bytes size, network::StepId step, Payload what, std::uint32_t own_step) {
  if (what != Payload::clear_to_send) play.sent_ += size;
  std::uint32_t d = 0;  // in which they differ
  while (play.delays_.topology().coordinate(NpuId(me), d) == play.delays_.topology().coordinate(NpuId(to), d)) ++d;
  const Time there = now + play.delays_.path_delay(NpuId(me), NpuId(to), size * play.sample_.at_once(d));
  play.at(there, to, [&to_play = play, to, from = me, step, what](Hands& hands) {
    to_play.members_[to].receive(from, step, what == Payload::clear_to_send, hands.now, hands);
  });
  if (what == Payload::acknowledged_data) wake({step.service, own_step}, there);
}

/// The bytes flow through when all members are there: the longer of what goes up and what comes down counts. All ports
/// are alike.
void Play::Hands::send_to_switch(std::span<const MessageProgram::Receiver> members, Bytes size, Bytes result,
                                 network::StepId step, Payload what) {
  if (what != Payload::clear_to_send) play.sent_ += size;
  for (const MessageProgram::Receiver& to : members) {
    Parts& parts = play.parts_[{to.member, step.service, step.step}];
    parts.last = std::max(parts.last, now);
    parts.size = std::max({parts.size, size, result});
    if (++parts.count < members.size()) continue;
    const Time there = parts.last + play.delays_.path_delay(NpuId(0), NpuId(1), parts.size);
    play.at(there, to.member, [&to_play = play, to = to.member, from = me, step](Hands& hands) {
      to_play.members_[to].receive(from, step, false, hands.now, hands);
    });
  }
}

void Play::Hands::wake(network::StepId step, Time time) {
  play.at(time, me, [&to_play = play, member = me, step](Hands& hands) {
    to_play.members_[member].wake(step, hands.now, hands);
  });
}

/// One chunk of a dimension at a time: then the engine's order is that of all members.
RandomCase one_at_a_time(std::mt19937_64& random) {
  RandomCase sample = random_case(random, 24);
  sample.options.active_chunks = sample.options.queues = 1;
  sample.options.overlap_latency = false;
  return sample;
}

/// Members complete as the engine says, whether they start together or not; but nobody before `least`, a function of
/// the last arrival.
template <class Least>
void expect_engine_times(std::mt19937_64& random, const RandomCase& sample, const Least& least) {
  const network::DelayModel delays = sample.delays();
  Engine engine(delays, sample.engine_options());
  const auto layout = engine.layout({}, all_dimensions);
  const auto script = engine.message_program(*layout, sample.kind, sample.size);
  for (const bool skew : {false, true}) {
    const std::vector<Time> arrivals =
        skew ? random_arrivals(random, delays.topology().num_npus()) : std::vector<Time>(delays.topology().num_npus());
    std::vector<Time> completions(arrivals.size());
    engine.finish(*layout, sample.kind, sample.size, arrivals, completions);
    std::vector<Time> played = Play(sample, delays, script).run(arrivals);
    for (Time& time : played) time = std::max(time, least(std::ranges::max(arrivals)));
    EXPECT_EQ(played, completions);
  }
}

TEST(MessageProgram, AgreesWithTheEngine) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    if (round % 4 == 0) add_random_faults(random, sample);
    expect_engine_times(random, sample, [&](Time last) { return last + tick(sample.rules.rounding); });
  }
}

/// A line by an algorithm that the other cases do not draw, with one chunk of a dimension at a time.
RandomCase line_by(AlgorithmKind algorithm, std::mt19937_64& random) {
  RandomCase sample = one_at_a_time(random);
  const std::uint32_t n = 2 + static_cast<std::uint32_t>(random() % 20);
  topology::Dimension line = sample.dimensions[0];
  line.size = n;
  if (algorithm == AlgorithmKind::in_switch) {
    line.shape = topology::Shape::switched;
    line.in_switch_operations = 1;
    line.oversubscription = 1;
  }
  sample.dimensions = {line};
  sample.options.all_reduce = sample.options.broadcast = sample.options.reduce = {{algorithm, 0, false}};
  sample.options.all_gather = sample.options.reduce_scatter = sample.options.all_to_all = {{}};
  if (algorithm == AlgorithmKind::in_switch)
    sample.options.all_gather = sample.options.reduce_scatter = sample.options.all_reduce;
  if (algorithm == AlgorithmKind::double_binary_tree) sample.options.broadcast = sample.options.reduce = {};
  const Kind kinds[] = {Kind::all_reduce, Kind::broadcast,      Kind::reduce,
                        Kind::all_gather, Kind::reduce_scatter, Kind::scatter};
  sample.kind = kinds[random() % (algorithm == AlgorithmKind::in_switch ? 6 : 3)];
  return sample;
}

TEST(MessageProgram, TreesAndSwitchesAgreeWithTheEngine) {
  std::mt19937_64 random(14);
  for (int round = 0; round < 600; ++round) {
    SCOPED_TRACE(round);
    constexpr AlgorithmKind algorithms[] = {AlgorithmKind::double_binary_tree, AlgorithmKind::binomial_tree,
                                            AlgorithmKind::in_switch};
    const AlgorithmKind algorithm = algorithms[round % 3];
    RandomCase sample = line_by(algorithm, random);
    // In the engine nobody completes a broadcast or reduce of its own before all have begun, and every chunk waits so.
    const bool is_loose = algorithm == AlgorithmKind::binomial_tree && sample.kind != Kind::all_reduce;
    if (is_loose) sample.options.splits = 1;
    const network::DelayModel delays = sample.delays();
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    const auto script = engine.message_program(*layout, sample.kind, sample.size);
    if (is_loose && script->num_chunks() > 1) continue;
    for (const bool skew : {false, true}) {
      const std::vector<Time> arrivals = skew ? random_arrivals(random, delays.topology().num_npus())
                                              : std::vector<Time>(delays.topology().num_npus());
      std::vector<Time> completions(arrivals.size());
      engine.finish(*layout, sample.kind, sample.size, arrivals, completions);
      Play play(sample, delays, script);
      std::vector<Time> played = play.run(arrivals);
      Time least = std::ranges::max(arrivals) + tick(delays.rounding());
      if (is_loose) least = std::max(least, std::ranges::max(arrivals) + sample.options.endpoint_delay * 2);
      for (Time& time : played) time = std::max(time, least);
      EXPECT_EQ(played, completions);
      EXPECT_EQ(play.sent() / delays.topology().num_npus(), engine.traffic(*layout, sample.kind, sample.size)[0]);
    }
  }
}

// Over several dimensions only lines that hold data carry any: the bytes are the engine's, and the last to complete is.
TEST(MessageProgram, BroadcastAndReduceGoWhole) {
  std::mt19937_64 random(15);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    sample.kind = round % 2 == 0 ? Kind::broadcast : Kind::reduce;
    sample.rules.charge_every_dimension = true;
    std::vector<Algorithm> algorithms;
    for (std::size_t d = 0; d < sample.dimensions.size(); ++d)
      algorithms.push_back({random() % 3 == 0 ? AlgorithmKind::ring : AlgorithmKind::binomial_tree, 0, false});
    sample.options.all_reduce = sample.options.broadcast = sample.options.reduce = algorithms;
    sample.options.splits = 1;
    const network::DelayModel delays = sample.delays();
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    const std::vector<Time> arrivals(delays.topology().num_npus());
    std::vector<Time> completions(arrivals.size());
    engine.finish(*layout, sample.kind, sample.size, arrivals, completions);
    const auto script = engine.message_program(*layout, sample.kind, sample.size);
    Play play(sample, delays, script);
    const std::vector<Time> played = play.run(arrivals);
    // Receivers that have had no data before ask earlier. In a Mesh the longest way of a ring may begin at such a
    // place.
    bool goes_back = false;
    for (std::size_t d = 0; d < algorithms.size(); ++d)
      goes_back |= sample.dimensions[d].shape == topology::Shape::mesh && algorithms[d].kind == AlgorithmKind::ring;
    if (script->num_chunks() == 1 && !sample.options.rendezvous && !goes_back) {
      EXPECT_EQ(std::ranges::max(played), std::ranges::max(completions));
    }
    EXPECT_LE(std::ranges::max(played), std::ranges::max(completions));
    Bytes sent;
    for (const Bytes bytes : engine.traffic(*layout, sample.kind, sample.size)) sent += bytes;
    EXPECT_LE(sent.count(), (play.sent() / delays.topology().num_npus()).count());
    EXPECT_GE(sent.count() + delays.topology().num_dimensions(), (play.sent() / delays.topology().num_npus()).count());
  }
}

// Where messages do not share links, members of a custom collective that act for themselves complete as the engine
// says, but that there nobody is through before all have begun.
TEST(MessageProgram, ProceduresAgreeWithTheEngine) {
  std::mt19937_64 random(15);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    if (round % 4 == 0) add_random_faults(random, sample);
    sample.options.splits = 1;
    sample.rules.share_bandwidth = false;
    sample.options.custom[sample.kind] = {random_custom_collective(random, sample.num_npus())};
    expect_engine_times(random, sample, [&](Time last) {
      const Time begun = last + (sample.rules.bare_custom_collectives ? Time::zero() : sample.options.endpoint_delay);
      return std::max(begun, last + tick(sample.rules.rounding));
    });
  }
}

// Of one dimension, where every message counts once.
TEST(MessageProgram, SendsTheBytesOfTheFormula) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    if (sample.dimensions.size() > 1) continue;
    const network::DelayModel delays = sample.delays();
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    Play play(sample, delays, engine.message_program(*layout, sample.kind, sample.size));
    play.run(std::vector<Time>(delays.topology().num_npus()));
    EXPECT_EQ(play.sent() / delays.topology().num_npus(), engine.traffic(*layout, sample.kind, sample.size)[0]);
  }
}

// Many chunks and queues, members that come when they like: nobody waits in a circle.
TEST(MessageProgram, EndsWhateverTheQueues) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const RandomCase sample = random_case(random, 24);
    const network::DelayModel delays = sample.delays();
    Engine engine(delays, sample.engine_options());
    const auto layout = engine.layout({}, all_dimensions);
    Play(sample, delays, engine.message_program(*layout, sample.kind, sample.size))
        .run(random_arrivals(random, delays.topology().num_npus()));
  }
}

}  // namespace
}  // namespace orrery::collective::test
