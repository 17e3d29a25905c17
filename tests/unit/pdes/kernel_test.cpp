// The kernel on one rank, alone or beside a rank that is silent.
#include "orrery/pdes/kernel.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "orrery/base/host.hpp"

namespace orrery::pdes {
namespace {

/// Writes down what happens; `on_event` and `on_settle` may make more of it.
class Script final : public Model {
 public:
  std::function<void(const Event&)> on_event = [](const Event&) {};
  std::function<void(Time)> on_settle = [](Time) {};
  std::function<bool(const Event&)> on_admit = [](const Event&) { return true; };
  std::function<Awaited(LpId)> on_awaits = [](LpId) { return Awaited{true, true, true}; };
  std::vector<std::string> log;

  void handle(const Event& event) override {
    log.push_back(fmt::format("{}{}@{}<{}", event.stage() == Stage::client ? 'c' : 's', event.target.value(),
                              event.time.ps(), event.source().value()));
    on_event(event);
  }
  void settle(Time now, Stage stage) override {
    if (stage == Stage::server) return log.push_back(fmt::format("servers@{}", now.ps()));
    log.push_back(fmt::format("settle@{}", now.ps()));
    on_settle(now);
  }
  bool admit(Event& event) override { return on_admit(event); }
  Awaited awaits(LpId lp) const override { return on_awaits(lp); }
  void proceed(LpId lp) override { log.push_back(fmt::format("proceed{}", lp.value())); }
  void receive(Rank, std::span<const std::byte>) override { FAIL(); }
  LookaheadBounds lookahead() override { return {}; }
  Time pending_reply(Rank) const override { return Time::max(); }
  std::string status() const override { return {}; }
};

struct Alone {
  explicit Alone(Time service_delay = Time::from_ps(5)) : Alone(options(service_delay)) {}
  explicit Alone(Options options) : kernel(*world, script, std::move(options)) {}

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

// Four events at three times are scheduled in another order. The kernel handles them by time and source, settles each
// time once, and counts them.
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

// An event sleeps for 60 ms, and another one works for 10 ms. The busy time is that of the processor.
TEST(Kernel, SleepIsNoBusyTime) {
  Alone run;
  run.script.on_event = [](const Event& event) {
    if (event.target == LpId(1)) return std::this_thread::sleep_for(std::chrono::milliseconds(60));
    for (const double start = cpu_time(); cpu_time() - start < 0.01;) continue;
  };
  run.schedule(10, Stage::client, 1, 1);
  run.schedule(20, Stage::client, 2, 2);
  run.kernel.run();
  EXPECT_GE(run.kernel.statistics().busy_time, 0.01);
  EXPECT_LT(run.kernel.statistics().busy_time, 0.05);
}

// Client 1 handles events of its own at once, after one that was scheduled. It may not while another one is pending for
// it, nor if it is no kernel in which clients may be ahead.
TEST(Kernel, AClientHandlesItsOwnEventsAtOnce) {
  Options options = Alone::options(Time::from_ps(5));
  options.lps_run_ahead = true;
  Alone run(std::move(options));
  run.script.on_awaits = [](LpId) { return Awaited{}; };
  std::vector<bool> may;
  run.script.on_settle = [&](Time now) {
    if (now != Time::from_ps(10)) return;
    may.push_back(run.kernel.advance(LpId(1), Time::from_ps(12)));
    may.push_back(run.kernel.advance(LpId(1), Time::from_ps(15)));
    run.schedule(20, Stage::client, 1, 1);
    may.push_back(run.kernel.advance(LpId(1), Time::from_ps(17)));
  };
  run.schedule(10, Stage::client, 1, 1);
  run.kernel.run();
  EXPECT_EQ(may, (std::vector{true, true, false}));
  EXPECT_EQ(run.script.log, (Log{"c1@10<1", "settle@10", "c1@20<1", "settle@20"}));
  EXPECT_EQ(run.kernel.statistics().events, 4U);
  EXPECT_EQ(run.kernel.statistics().critical_path, 4U);
  EXPECT_THROW(run.schedule(14, Stage::client, 1, 1), Error);  // it has been at 20 ps

  Alone in_order;
  EXPECT_FALSE(in_order.kernel.advance(LpId(1), Time::from_ps(1)));
}

// Two clients call a server at 10 ps. The kernel settles the clients' time before the server handles both calls, then
// it settles the servers' time, and the answers come before an event of a later source.
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
  EXPECT_EQ(run.script.log, (Log{"c1@10<1", "c2@10<2", "settle@10", "s8@10<1", "s8@10<2", "servers@10", "c1@15<8",
                                 "c2@15<8", "c4@15<9", "settle@15"}));
}

// Clients 1 to 3 pass 3,000 events on to each other, and call a server now and then. The kernel stops after a burst,
// and its state goes on in another kernel, and so on. Together they do what one kernel does that never stops, and count
// it.
TEST(Kernel, AnotherOneGoesOnFromTheStateOfOneThatHasStopped) {
  const auto play = [](Alone& run) {
    run.script.on_event = [&run](const Event& event) {
      const std::int64_t at = event.time.ps();
      if (event.stage() == Stage::server) return run.schedule(at + 5, Stage::client, event.source().value(), 8);
      if (event.source().value() == 8) return;
      if (at % 7 == 0) run.schedule(at, Stage::server, 8, event.target.value());
      if (at < 20'000) run.schedule(at + 20 + event.target.value(), Stage::client, 1 + event.target.value() % 3, 0);
    };
  };
  Alone whole;
  play(whole);
  for (std::uint32_t client = 1; client < 4; ++client) whole.schedule(client, Stage::client, client, 0);
  whole.kernel.run();

  Log log;
  std::uint64_t sequence = 0;
  KernelState state;
  for (std::uint32_t client = 1; client < 4; ++client) {
    Event first = Event::make(Time::from_ps(client), Stage::client, LpId(0), sequence++, LpId(client));
    state.events.push_back(first);
  }
  int parts = 0;
  for (bool is_stopped = true; is_stopped; ++parts) {
    Options options = Alone::options(Time::from_ps(5));
    options.stop_mode = [parts] { return parts % 2 == 0 ? StopMode::now : StopMode::caught_up; };
    Alone part(std::move(options));
    part.sequence = sequence;
    play(part);
    part.kernel.restore(state);
    part.kernel.run();
    is_stopped = part.kernel.stopped_at().has_value() && !part.kernel.state().events.empty();
    state = part.kernel.state();
    sequence = part.sequence;
    log.insert(log.end(), part.script.log.begin(), part.script.log.end());
  }
  EXPECT_GT(parts, 5);
  EXPECT_EQ(log, whole.script.log);
  EXPECT_EQ(state.num_handled, whole.kernel.statistics().events);
  EXPECT_EQ(state.critical_path, whole.kernel.statistics().critical_path);
}

// Server 8 has events at 10, 20 and 30 ps, and server 9 at 15 ps. While it handles the first one, the model takes the
// others of server 8 back. It sends them again, 100 ps later, while server 9 handles its event.
TEST(Kernel, WithdrawnEventsComeLater) {
  Alone run;
  std::vector<Event> withdrawn;
  run.script.on_event = [&](const Event& event) {
    if (event.time == Time::from_ps(10))
      withdrawn = run.kernel.withdraw([](const Event& waiting) { return waiting.target == LpId(8); }, {});
    if (event.target == LpId(9))
      for (Event& later : withdrawn) {
        later.time += Time::from_ps(100);
        run.kernel.send(Rank(0), later);
      }
  };
  for (const std::int64_t ps : {10, 20, 30}) run.schedule(ps, Stage::server, 8, 8);
  run.schedule(15, Stage::server, 9, 9);
  run.kernel.run();
  EXPECT_EQ(run.script.log, (Log{"s8@10<8", "servers@10", "s9@15<9", "servers@15", "s8@120<8", "servers@120",
                                 "s8@130<8", "servers@130"}));
}

// Client 1 computes until 1 ms, and client 2 until 10,000 ps, one after the other. When client 1 has come to its end,
// the kernel is asked to stop. It stops before the next event of client 2. Another kernel goes on from there to the
// end.
TEST(Kernel, StopsAtOnceThoughAClientIsAhead) {
  constexpr std::int64_t end = 1'000'000'000;
  bool is_wanted = false;
  const auto options = [&is_wanted] {
    Options ahead = Alone::options(Time::from_ps(5));
    ahead.lps_run_ahead = true;
    ahead.cell_of = {0, 0, 1};
    ahead.stop_mode = [&is_wanted] { return is_wanted ? StopMode::now : StopMode::none; };
    return ahead;
  };
  const auto play = [&](Alone& run) {
    run.script.on_awaits = [](LpId) { return Awaited{}; };
    run.script.on_event = [&](const Event& event) {
      const std::int64_t at = event.time.ps();
      const bool is_first = event.target == LpId(1);
      if (at == end) is_wanted = true;
      if (at < (is_first ? end : 10'000))
        run.schedule(at + (is_first ? 1'000'000 : 1), Stage::client, is_first ? 1 : 2, 0);
    };
  };
  Alone run(options());
  play(run);
  for (std::uint32_t client = 1; client < 3; ++client) run.schedule(0, Stage::client, client, 0);
  run.kernel.run();
  ASSERT_TRUE(run.kernel.stopped_at().has_value());
  EXPECT_FALSE(run.kernel.has_caught_up());
  EXPECT_LT(*run.kernel.stopped_at(), Time::from_ps(10'000));
  const KernelState state = run.kernel.state();
  ASSERT_EQ(state.events.size(), 1U);
  EXPECT_EQ(state.events[0].time, *run.kernel.stopped_at() + Time::from_ps(1));

  is_wanted = false;
  Alone rest(options());
  rest.sequence = run.sequence;
  play(rest);
  rest.kernel.restore(state);
  rest.kernel.run();
  EXPECT_FALSE(rest.kernel.stopped_at().has_value());
  EXPECT_EQ(rest.kernel.statistics().events, 1'001U + 10'001U);
  EXPECT_EQ(rest.script.log.back(), "settle@10000");
}

// The model takes an event back at 1 ps. The kernel stops on request, and the model is told the time, which is that of
// the last event. Then it sends the event again, and the kernel goes on to it.
TEST(Kernel, AsksForWithdrawnEventsWhenItStops) {
  Options options = Alone::options(Time::from_ps(5));
  options.stop_mode = [] { return StopMode::caught_up; };
  Alone run(std::move(options));
  std::vector<Event> withdrawn;
  std::vector<Time> told;
  run.script.on_event = [&](const Event& event) {
    if (event.time != Time::from_ps(1)) return;
    withdrawn = run.kernel.withdraw([](const Event& waiting) { return waiting.target == LpId(9); },
                                    [&](Time stopped_at) {
                                      told.push_back(stopped_at);
                                      for (const Event& later : std::exchange(withdrawn, {}))
                                        run.kernel.send(Rank(0), later);
                                    });
  };
  for (std::int64_t ps = 1; ps < 1000; ++ps) run.schedule(ps, Stage::server, 8, 8);
  run.schedule(1500, Stage::server, 9, 9);
  run.kernel.run();
  ASSERT_TRUE(run.kernel.stopped_at().has_value());
  EXPECT_EQ(told, std::vector<Time>{*run.kernel.stopped_at()});
  EXPECT_EQ(run.script.log.back(), fmt::format("servers@{}", told.at(0).ps()));
  while (run.kernel.stopped_at()) {
    run.kernel.run();
    if (run.script.log.back() == "servers@1500") return;
  }
  FAIL() << run.script.log.back();
}

// A client calls a server when its time is settled. The server handles the call at that time.
TEST(Kernel, SettlingMayCallServersOfTheSameTime) {
  Alone run;
  run.script.on_settle = [&](Time now) {
    if (now == Time::from_ps(3)) run.schedule(3, Stage::server, 8, 1);
  };
  run.schedule(3, Stage::client, 1, 1);
  run.schedule(4, Stage::client, 1, 1);
  run.kernel.run();
  EXPECT_EQ(run.script.log, (Log{"c1@3<1", "settle@3", "s8@3<1", "servers@3", "c1@4<1", "settle@4"}));
}

// An event of a client schedules another one for the same client, no later than itself. The run ends with an error that
// names both LPs and times.
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

// An event of a server schedules another one for a server at the same time. The run ends with an error.
TEST(Kernel, RefusesAServersPast) {
  Alone run;
  run.script.on_event = [&](const Event& event) {
    if (event.stage() == Stage::server) run.schedule(event.time.ps(), Stage::server, 8, 1);
  };
  run.schedule(10, Stage::server, 8, 1);
  EXPECT_THROW(run.kernel.run(), Error);
}

// A kernel of one rank is to send to another rank. It throws an error.
TEST(Kernel, RefusesOtherRanksWhenAlone) {
  Alone run;
  EXPECT_THROW(run.kernel.send(Rank(1), run.event(1, Stage::client, 1, 1)), Error);
  EXPECT_THROW(run.kernel.post(Rank(1), {}), Error);
}

// LP 1 causes a chain of four events and then one of LP 2; three events of LP 5 follow each other. The critical path
// has five events, and the depth of an LP can be raised but not lowered.
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

// Nothing is scheduled. The run ends and the model is not called.
TEST(Kernel, EndsAtOnceWithoutEvents) {
  Alone run;
  run.kernel.run();
  EXPECT_TRUE(run.script.log.empty());
}

/// A transport to a rank that is silent: it takes messages and sends none. Every reduction ends at once and shows that
/// no message is under way.
class SilentTransport final : public parallel::Transport {
 public:
  int polls = 0;
  std::function<std::uint64_t()> on_bytes_under_way = [] { return 0; };

  void send(Rank, std::span<const std::byte>) override {}
  std::uint64_t bytes_under_way(std::uint64_t) override { return on_bytes_under_way(); }
  int poll(const Receiver&) override {
    ++polls;
    return 0;
  }
  void start_reduction(std::span<const std::int64_t> minima, std::span<const std::int64_t> sums) override {
    minima_.assign(minima.begin(), minima.end());
    sums_.assign(sums.size(), 0);
  }
  std::optional<Reduced> finish_reduction() override { return Reduced{minima_, sums_}; }

 private:
  std::vector<std::int64_t> minima_, sums_;
};

/// Rank 0 with LPs 1 and 2. Rank 1, which is silent, may send events. LP 1 awaits them until `is_informed`; LP 2 awaits
/// nothing.
class BesideASilentRank : public ::testing::Test {
 protected:
  BesideASilentRank() {
    script.on_awaits = [this](LpId lp) { return Awaited{.sends = lp == LpId(1) && !is_informed}; };
    script.on_event = [this](const Event& event) {
      if (event.target == LpId(2) && on_second) on_second(event.time);
    };
  }

  static Options options() {
    Options options;
    options.num_lps = 4;
    options.neighbours = {
        {.rank = Rank(1), .outgoing = true, .incoming = true, .event_delay = Time::from_ps(100), .requests = false}};
    options.least_event_delay = Time::from_ps(100);
    options.lps_run_ahead = true;
    options.watchdog_seconds = 20;
    return options;
  }
  Event event(std::int64_t ps, std::uint32_t target, std::uint32_t source) {
    return Event::make(Time::from_ps(ps), Stage::client, LpId(source), sequence++, LpId(target));
  }
  void schedule(std::int64_t ps, std::uint32_t target) { kernel.schedule(event(ps, target, target)); }

  Script script;
  std::unique_ptr<SilentTransport> made = std::make_unique<SilentTransport>();
  SilentTransport& transport = *made;
  Kernel kernel{script, options(), std::move(made), Rank(0), 2};
  bool is_informed = false;
  std::function<void(Time)> on_second;  // what LP 2 does in its events
  std::uint64_t sequence = 0;
};

// LP 1 has an event at 10 ps that is not certain. LP 2 is ahead of it. Nothing ever comes, which the reduction shows.
TEST_F(BesideASilentRank, AnLpThatAwaitsNothingIsAheadOfOthers) {
  schedule(10, 1);
  schedule(20, 2);
  schedule(30, 2);
  kernel.run();
  EXPECT_EQ(script.log, (Log{"c2@20<2", "settle@20", "c2@30<2", "settle@30", "c1@10<1", "settle@10"}));
  EXPECT_GE(kernel.statistics().reductions, 1U);
}

// LP 2 has events for several bursts. After the first one, rank 1 takes what it was sent only after rank 0 has looked
// for messages five times. LP 2 goes on then.
TEST_F(BesideASilentRank, WaitsForAReceiverThatIsBehind) {
  std::uint64_t left = 5;
  std::vector<int> polls;
  transport.on_bytes_under_way = [&] { return left > 0 ? left-- : 0; };
  on_second = [&](Time) { polls.push_back(transport.polls); };
  for (int i = 0; i < 1000; ++i) schedule(20 + i, 2);
  kernel.run();
  ASSERT_EQ(polls.size(), 1000U);
  EXPECT_EQ(polls.front(), 0);
  EXPECT_GE(polls.back(), 5);
  EXPECT_EQ(left, 0U);
}

// Rank 1 never takes what LP 2 has sent in its first burst. The watchdog ends the run with an error, and LP 2 does not
// go on.
TEST_F(BesideASilentRank, GivesUpAReceiverThatTakesNothing) {
  Options options = BesideASilentRank::options();
  options.watchdog_seconds = 0.01;
  auto stuck = std::make_unique<SilentTransport>();
  stuck->on_bytes_under_way = [] { return 1000; };
  Kernel waiting(script, std::move(options), std::move(stuck), Rank(0), 2);
  int handled = 0;
  on_second = [&](Time) { ++handled; };
  for (int i = 0; i < 1000; ++i) waiting.schedule(event(20 + i, 2, 2));
  EXPECT_THROW(waiting.run(), Error);
  EXPECT_GT(handled, 0);
  EXPECT_LT(handled, 500);
}

// At 20 ps LP 2 gives LP 1 what it awaits: an event at 30 ps. LP 1 then handles its event at 10 ps at once, before LP 2
// goes on.
TEST_F(BesideASilentRank, AnEventWakesADeferredLp) {
  on_second = [this](Time now) {
    if (now != Time::from_ps(20)) return;
    is_informed = true;
    kernel.send(Rank(0), event(30, 1, 2));
  };
  schedule(10, 1);
  schedule(20, 2);
  schedule(40, 2);
  kernel.run();
  EXPECT_EQ(script.log,
            (Log{"c2@20<2", "settle@20", "c1@10<1", "settle@10", "c1@30<2", "settle@30", "c2@40<2", "settle@40"}));
}

// The same, but the model keeps the event: there is no other event at 30 ps.
TEST_F(BesideASilentRank, AnEventThatTheModelKeepsWakesADeferredLpToo) {
  script.on_admit = [](const Event& event) { return event.target != LpId(1); };
  on_second = [this](Time now) {
    if (now != Time::from_ps(20)) return;
    is_informed = true;
    kernel.send(Rank(0), event(30, 1, 2));
  };
  schedule(10, 1);
  schedule(20, 2);
  schedule(40, 2);
  kernel.run();
  EXPECT_EQ(script.log, (Log{"c2@20<2", "settle@20", "c1@10<1", "settle@10", "c2@40<2", "settle@40"}));
}

// At 10 ps LP 1, which awaited nothing before, breaks off and waits. It goes on when LP 2 has given it what it
// awaits. This is no event of the model.
TEST_F(BesideASilentRank, AnLpThatLingersGoesOnWhenItIsInformed) {
  is_informed = true;
  bool has_waited = false;
  script.on_settle = [&](Time now) {
    if (now != Time::from_ps(10) || std::exchange(has_waited, true)) return;
    is_informed = false;
    kernel.wait_until_certain(LpId(1));
  };
  script.on_admit = [](const Event&) { return false; };
  on_second = [this](Time now) {
    if (now != Time::from_ps(20)) return;
    is_informed = true;
    kernel.send(Rank(0), event(5, 1, 2));
  };
  schedule(10, 1);
  schedule(20, 2);
  schedule(40, 2);
  kernel.run();
  EXPECT_EQ(script.log,
            (Log{"c1@10<1", "settle@10", "c2@20<2", "settle@20", "proceed1", "settle@10", "c2@40<2", "settle@40"}));
  EXPECT_EQ(kernel.statistics().events, 3U);
}

}  // namespace
}  // namespace orrery::pdes
