// The kernel on one rank.
#include "orrery/pdes/kernel.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace orrery::pdes {
namespace {

/// Writes down what happens; `on_event` and `on_settle` may make more of it.
class Script final : public Model {
 public:
  std::function<void(const Event&)> on_event = [](const Event&) {};
  std::function<void(Time)> on_settle = [](Time) {};
  std::vector<std::string> log;

  void handle(const Event& event) override {
    log.push_back(fmt::format("{}{}@{}<{}", event.stage() == Stage::client ? 'c' : 's', event.target.value(),
                              event.time.ps(), event.source().value()));
    on_event(event);
  }
  void settle(Time now) override {
    log.push_back(fmt::format("settle@{}", now.ps()));
    on_settle(now);
  }
  bool admit(Event&) override { return true; }
  Awaited awaits(LpId) const override { return {true, true, true}; }
  void proceed(LpId lp) override { log.push_back(fmt::format("proceed{}", lp.value())); }
  void receive(Rank, std::span<const std::byte>) override { FAIL(); }
  LookaheadBounds lookahead() override { return {}; }
  Time pending_reply(Rank) const override { return Time::max(); }
  std::string status() const override { return {}; }
};

struct Alone {
  explicit Alone(Time service_delay = Time::from_ps(5)) : kernel(*world, script, options(service_delay)) {}

  static Options options(Time service_delay) {
    Options options;
    options.num_lps = 16;
    options.service_delay = service_delay;
    return options;
  }
  Event event(std::int64_t ps, Stage stage, std::uint32_t target, std::uint32_t source) {
    Event e;
    e.time = Time::from_ps(ps);
    e.order = Event::make_order(stage, LpId(source), sequence++);
    e.target = LpId(target);
    return e;
  }
  void schedule(std::int64_t ps, Stage stage, std::uint32_t target, std::uint32_t source) {
    kernel.schedule(event(ps, stage, target, source));
  }

  std::unique_ptr<parallel::Communicator> world = parallel::make_serial();
  Script script;
  Kernel kernel;
  std::uint64_t sequence = 0;
};

using Log = std::vector<std::string>;

TEST(Kernel, HandlesInOrderAndSettlesOncePerTime) {
  Alone run;
  run.schedule(20, Stage::client, 1, 1);
  run.schedule(10, Stage::client, 2, 9);
  run.schedule(10, Stage::client, 3, 4);
  run.schedule(0, Stage::client, 1, 0);
  run.kernel.run();
  EXPECT_EQ(run.script.log, (Log{"c1@0<0", "settle@0", "c3@10<4", "c2@10<9", "settle@10", "c1@20<1", "settle@20"}));
  EXPECT_EQ(run.kernel.statistics().events, 4U);
  EXPECT_EQ(run.kernel.statistics().peak_pending_events, 4U);
  EXPECT_EQ(run.kernel.now(), Time::from_ps(20));
}

TEST(Kernel, ServersFollowTheClientsOfTheSameTime) {
  Alone run;
  run.script.on_event = [&](const Event& event) {
    if (event.stage() == Stage::server) run.schedule(event.time.ps() + 5, Stage::client, event.source().value(), 8);
    if (event.stage() == Stage::client && event.source().value() < 3)
      run.schedule(event.time.ps(), Stage::server, 8, event.target.value());
  };
  run.schedule(10, Stage::client, 2, 2);
  run.schedule(10, Stage::client, 1, 1);
  run.schedule(15, Stage::client, 4, 9);  // at the time of the answers: their source comes first
  run.kernel.run();
  EXPECT_EQ(run.script.log, (Log{"c1@10<1", "c2@10<2", "settle@10", "s8@10<1", "s8@10<2", "c1@15<8", "c2@15<8",
                                 "c4@15<9", "settle@15"}));
}

TEST(Kernel, SettlingMayCallServersOfTheSameTime) {
  Alone run;
  run.script.on_settle = [&](Time now) {
    if (now == Time::from_ps(3)) run.schedule(3, Stage::server, 8, 1);
  };
  run.schedule(3, Stage::client, 1, 1);
  run.schedule(4, Stage::client, 1, 1);
  run.kernel.run();
  EXPECT_EQ(run.script.log, (Log{"c1@3<1", "settle@3", "s8@3<1", "c1@4<1", "settle@4"}));
}

TEST(Kernel, RefusesThePast) {
  for (const std::int64_t ps : {9, 10}) {
    Alone run;
    run.script.on_event = [&](const Event&) { run.schedule(ps, Stage::client, 2, 1); };
    run.schedule(10, Stage::client, 2, 1);
    try {
      run.kernel.run();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::internal);
      const auto expected =
          fmt::format("causality: an event of LP 1 for LP 2 at {} ps is scheduled when it is at 10 ps already.", ps);
      EXPECT_TRUE(std::string(error.what()).starts_with(expected)) << error.what();
    }
  }
}

TEST(Kernel, RefusesAServersPast) {
  Alone run;
  run.script.on_event = [&](const Event& event) {
    if (event.stage() == Stage::server) run.schedule(event.time.ps(), Stage::server, 8, 1);
  };
  run.schedule(10, Stage::server, 8, 1);
  EXPECT_THROW(run.kernel.run(), Error);
}

TEST(Kernel, RefusesOtherRanksWhenAlone) {
  Alone run;
  EXPECT_THROW(run.kernel.send(Rank(1), run.event(1, Stage::client, 1, 1)), Error);
  EXPECT_THROW(run.kernel.post(Rank(1), {}), Error);
}

TEST(Kernel, CountsTheLongestChainOfCauses) {
  Alone run;
  run.script.on_event = [&](const Event& event) {
    if (event.target.value() == 1 && event.time < Time::from_ps(3))
      run.schedule(event.time.ps() + 1, Stage::client, 1, 1);
    if (event.time == Time::from_ps(3)) run.schedule(9, Stage::client, 2, 1);
  };
  run.schedule(0, Stage::client, 1, 1);
  for (int i = 0; i < 3; ++i) run.schedule(0, Stage::client, 5, 5);  // a chain too: one LP handles one after the other
  run.kernel.run();
  EXPECT_EQ(run.kernel.statistics().events, 8U);
  EXPECT_EQ(run.kernel.statistics().critical_path, 5U);  // LP 1 at 0, 1, 2, 3, then LP 2
  EXPECT_EQ(run.kernel.depth(LpId(2)), 5U);
  run.kernel.raise_depth(LpId(2), 4);
  EXPECT_EQ(run.kernel.depth(LpId(2)), 5U);
  run.kernel.raise_depth(LpId(2), 6);
  EXPECT_EQ(run.kernel.depth(LpId(2)), 6U);
}

TEST(Kernel, EndsAtOnceWithoutEvents) {
  Alone run;
  run.kernel.run();
  EXPECT_TRUE(run.script.log.empty());
}

}  // namespace
}  // namespace orrery::pdes
