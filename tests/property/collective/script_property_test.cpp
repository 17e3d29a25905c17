// The script of a collective, played message by message by the members of the executor over links that are never taken,
// gives what the engine's recurrences give.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "member_run.hpp"
#include "orrery/collective/script.hpp"
#include "random_case.hpp"

namespace orrery::collective::test {
namespace {

/// All members of one collective, with the topology's delays.
class Play {
 public:
  Play(const RandomCase& sample, const topology::Topology& topology, std::shared_ptr<const Script> script)
      : topology_(topology), completions_(topology.num_npus()) {
    for (std::uint32_t m = 0; m < topology.num_npus(); ++m) members_.emplace_back(script, m, sample.options.rendezvous);
  }

  std::vector<Time> run(const std::vector<Time>& arrivals) {
    for (std::uint32_t m = 0; m < arrivals.size(); ++m)
      at(arrivals[m], m, [this, m](auto& hands) { members_[m].begin(hands.now, hands); });
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      Hands hands(*this, event.member, event.time);
      const bool was_done = members_[event.member].is_done();
      event.act(hands);
      if (members_[event.member].is_done() && !was_done) completions_[event.member] = event.time;
    }
    for (const executor::MemberRun& member : members_) {
      EXPECT_TRUE(member.is_done());
      EXPECT_FALSE(member.is_asked_for_more());
    }
    return completions_;
  }
  Bytes sent() const { return sent_; }

 private:
  struct Hands final : executor::MemberRun::Hands {
    Play& play;
    std::uint32_t me;
    Time now;

    Hands(Play& of, std::uint32_t member, Time time) : play(of), me(member), now(time) {}
    void send(std::uint32_t to, Bytes size, std::uint32_t service, std::uint32_t step, bool is_word) override;
    void wake(std::uint32_t service, Time time) override;
  };
  using Act = std::function<void(Hands&)>;
  struct Event {
    Time time;
    std::uint64_t order = 0;
    std::uint32_t member = 0;
    Act act;
    bool operator>(const Event& other) const { return std::pair(time, order) > std::pair(other.time, other.order); }
  };

  void at(Time time, std::uint32_t member, Act act) { events_.push({time, order_++, member, std::move(act)}); }

  const topology::Topology& topology_;
  std::vector<executor::MemberRun> members_;
  std::vector<Time> completions_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
  Bytes sent_;
};

void Play::Hands::send(std::uint32_t to, Bytes size, std::uint32_t service, std::uint32_t step, bool is_word) {
  if (!is_word) play.sent_ += size;
  play.at(now + play.topology_.path_delay(NpuId(me), NpuId(to), size), to,
          [&to_play = play, to, from = me, service, step, is_word](Hands& hands) {
            to_play.members_[to].receive(from, service, step, is_word, hands.now, hands);
          });
}

void Play::Hands::wake(std::uint32_t service, Time time) {
  play.at(time, me, [&to_play = play, member = me, service](Hands& hands) {
    to_play.members_[member].wake(service, hands.now, hands);
  });
}

/// One chunk of a dimension at a time: then the engine's order is that of all members.
RandomCase one_at_a_time(std::mt19937_64& random) {
  RandomCase sample = random_case(random, 24);
  sample.options.active_chunks = sample.options.queues = 1;
  sample.options.overlap_latency = false;
  return sample;
}

TEST(Script, AgreesWithTheEngine) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    if (round % 4 == 0) add_random_faults(random, sample);
    const topology::Topology topology = sample.topology();
    Engine engine(topology, sample.options);
    const auto layout = engine.layout({}, all_dimensions);
    const auto script = engine.script(*layout, sample.kind, sample.size);
    for (const bool skew : {false, true}) {
      const std::vector<Time> arrivals =
          skew ? random_arrivals(random, topology.num_npus()) : std::vector<Time>(topology.num_npus());
      std::vector<Time> completions(arrivals.size());
      engine.finish(*layout, sample.kind, sample.size, arrivals, completions);
      std::vector<Time> played = Play(sample, topology, script).run(arrivals);
      const Time least = std::ranges::max(arrivals) + tick(topology.rules().rounding);
      for (Time& time : played) time = std::max(time, least);
      EXPECT_EQ(played, completions);
    }
  }
}

// Of one dimension, where every message counts once.
TEST(Script, SendsTheBytesOfTheFormula) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    RandomCase sample = one_at_a_time(random);
    if (sample.dimensions.size() > 1) continue;
    const topology::Topology topology = sample.topology();
    Engine engine(topology, sample.options);
    const auto layout = engine.layout({}, all_dimensions);
    Play play(sample, topology, engine.script(*layout, sample.kind, sample.size));
    play.run(std::vector<Time>(topology.num_npus()));
    EXPECT_EQ(play.sent() / topology.num_npus(), engine.traffic(*layout, sample.kind, sample.size)[0]);
  }
}

// Many chunks and queues, members that come when they like: nobody waits in a circle.
TEST(Script, EndsWhateverTheQueues) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const RandomCase sample = random_case(random, 24);
    const topology::Topology topology = sample.topology();
    Engine engine(topology, sample.options);
    const auto layout = engine.layout({}, all_dimensions);
    Play(sample, topology, engine.script(*layout, sample.kind, sample.size))
        .run(random_arrivals(random, topology.num_npus()));
  }
}

}  // namespace
}  // namespace orrery::collective::test
