// Random models on several ranks against the serial order: every LP handles the same events in the same order, whatever
// the partition, the delay of messages and their order on different channels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "mpi_world.hpp"
#include "random_model.hpp"
#include "transports.hpp"

namespace orrery::pdes::test {
namespace {

using orrery::test::world;

struct Outcome {
  std::vector<Log> logs;                 // [LPs]; those of this rank are filled in
  std::vector<std::uint64_t> waits_for;  // [LPs] groups that a client has joined in vain, as bits
  std::uint64_t events = 0, critical_path = 0;
};

Outcome outcome(const RandomModel& model, const Kernel& kernel, const System& system) {
  std::vector<std::uint64_t> waits_for(system.num_lps());
  for (std::uint32_t client = 0; client < system.clients.size(); ++client) waits_for[client] = model.waits_for(client);
  return {model.logs(), std::move(waits_for), kernel.statistics().events, kernel.statistics().critical_path};
}

/// One in four gets stuck.
System system_of(std::uint64_t seed, int ranks) {
  return seed % 4 == 3 ? make_stuck_system(seed, ranks) : make_system(seed, ranks);
}

/// One rank handles all events in the order of time.
Outcome run_serially(const System& system) {
  const auto alone = parallel::make_serial();
  RandomModel model(system, Rank(0));
  Options options = system.kernel_options(Rank(0));
  options.lps_run_ahead = false;
  options.cell_of.clear();
  Kernel kernel(*alone, model, std::move(options));
  model.start(kernel);
  kernel.run();
  return outcome(model, kernel, system);
}

Outcome run_rank(const System& system, Rank here, std::unique_ptr<parallel::Transport> transport) {
  RandomModel model(system, here);
  Kernel kernel(model, system.kernel_options(here), std::move(transport), here, system.ranks);
  model.start(kernel);
  kernel.run();
  return outcome(model, kernel, system);
}

std::uint32_t most_polls(std::uint64_t seed) { return seed % 4 == 0 ? 0 : seed % 4 == 1 ? 3 : 30; }

/// Puts in `whole` what one rank knows.
void merge(Outcome& whole, const Outcome& part, const System& system, Rank rank) {
  whole.logs.resize(part.logs.size());
  whole.waits_for.resize(part.logs.size());
  for (std::size_t lp = 0; lp < part.logs.size(); ++lp) {
    if (system.host[lp] != rank) continue;
    whole.logs[lp] = part.logs[lp];
    whole.waits_for[lp] = part.waits_for[lp];
  }
  whole.events += part.events;
  whole.critical_path = std::max(whole.critical_path, part.critical_path);
}

std::string difference(const Outcome& expected, const Outcome& found) {
  for (std::size_t lp = 0; lp < expected.logs.size(); ++lp)
    if (!(expected.logs[lp] == found.logs[lp]))
      return fmt::format("LP {} handled {} events, {} in the serial order", lp, found.logs[lp].events,
                         expected.logs[lp].events);
  for (std::size_t lp = 0; lp < expected.waits_for.size(); ++lp)
    if (expected.waits_for[lp] != found.waits_for[lp])
      return fmt::format("LP {} waits for groups {:#b}, {:#b} in the serial order", lp, found.waits_for[lp],
                         expected.waits_for[lp]);
  if (expected.events != found.events) return fmt::format("{} events, {} serially", found.events, expected.events);
  if (expected.critical_path != found.critical_path)
    return fmt::format("critical path {}, {} serially", found.critical_path, expected.critical_path);
  return {};
}

std::string run_on_all_ranks(std::uint64_t seed) {
  const auto system = system_of(seed, world().size());
  Outcome mine;
  try {
    std::unique_ptr<parallel::Transport> transport;
    if (world().size() > 1) {
      transport = std::make_unique<DelayingTransport>(parallel::make_transport(world()), world().size(),
                                                      mix(seed, static_cast<std::uint64_t>(world().rank().value())),
                                                      most_polls(seed));
    }
    mine = run_rank(system, world().rank(), std::move(transport));
  } catch (const std::exception& error) {
    fmt::print(stderr, "seed {}, rank {}: {}\n", seed, world().rank().value(), error.what());
    parallel::Environment::abort(1);
  }
  std::vector<std::int64_t> figures;
  for (std::size_t lp = 0; lp < mine.logs.size(); ++lp) {
    const bool is_here = system.host[lp] == world().rank();
    figures.push_back(is_here ? static_cast<std::int64_t>(mine.logs[lp].hash) : 0);
    figures.push_back(is_here ? static_cast<std::int64_t>(mine.logs[lp].events) : 0);
    figures.push_back(is_here ? static_cast<std::int64_t>(mine.waits_for[lp]) : 0);
  }
  figures.push_back(static_cast<std::int64_t>(mine.events));
  world().sum(figures);
  auto longest = static_cast<std::int64_t>(mine.critical_path);
  world().maximum(std::span(&longest, 1));
  Outcome whole;
  for (std::size_t lp = 0; lp < mine.logs.size(); ++lp) {
    whole.logs.push_back(
        {static_cast<std::uint64_t>(figures[3 * lp]), static_cast<std::uint64_t>(figures[3 * lp + 1])});
    whole.waits_for.push_back(static_cast<std::uint64_t>(figures[3 * lp + 2]));
  }
  whole.events = static_cast<std::uint64_t>(figures.back());
  whole.critical_path = static_cast<std::uint64_t>(longest);
  return difference(run_serially(system_of(seed, 1)), whole);
}

// Random models run on all ranks. Each gives the results of a run in the serial order of events. ORRERY_TEST_SEED
// repeats one seed; ORRERY_TEST_SECONDS says for how long.
TEST(Kernel, AgreesWithTheSerialOrder) {
  const char* only = std::getenv("ORRERY_TEST_SEED");
  const char* seconds = std::getenv("ORRERY_TEST_SECONDS");
  const double limit = seconds ? std::atof(seconds) : 5;
  const std::uint64_t first = only ? std::strtoull(only, nullptr, 10) : 1, last = only ? first : 1'000'000;
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t seeds = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed, ++seeds) {
    std::vector<char> go_on{std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < limit};
    world().broadcast(go_on, Rank(0));
    if (!go_on[0]) break;
    const auto difference = run_on_all_ranks(seed);
    ASSERT_EQ(difference, "") << "seed " << seed << " on " << world().size() << " ranks";
  }
  if (world().is_root()) fmt::print("{} seeds\n", seeds);
}

constexpr std::string_view ended_by_another = "ended by another rank";

struct InThreads {
  std::vector<std::string> errors;  // [ranks]
  Outcome whole;
};

/// What carries the messages of a rank; nothing: the rank is silent until the others end.
using MakeTransport = std::function<std::unique_ptr<parallel::Transport>(Hub&, Rank)>;

InThreads run_in_threads(const System& system, const MakeTransport& make_transport) {
  Hub hub(system.ranks);
  InThreads result;
  result.errors.resize(static_cast<std::size_t>(system.ranks));
  std::vector<Outcome> parts(result.errors.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < system.ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      try {
        auto transport = make_transport(hub, Rank(r));
        while (!transport && !hub.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (transport) parts[i] = run_rank(system, Rank(r), std::move(transport));
      } catch (const Error& error) {
        result.errors[i] = fmt::format("{} {}", static_cast<int>(error.code()), error.what());
        hub.end();
      } catch (const Hub::Ended&) {
        result.errors[i] = ended_by_another;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int r = 0; r < system.ranks; ++r) merge(result.whole, parts[static_cast<std::size_t>(r)], system, Rank(r));
  return result;
}

InThreads run_in_threads(const System& system) {
  return run_in_threads(system, [&](Hub& hub, Rank rank) {
    return std::make_unique<DelayingTransport>(hub.transport(rank), system.ranks, mix(system.seed, rank.index()),
                                               most_polls(system.seed));
  });
}

/// Threads that wait for each other take long where others use the cores: fewer cases then.
class Patience {
 public:
  explicit Patience(double seconds) : seconds_(seconds) {}
  bool is_over() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count() > seconds_;
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double seconds_;
};

// Random models run on 2 to 8 ranks, each a thread. Each gives the results of a run in the serial order of events.
TEST(Kernel, AgreesWithTheSerialOrderInThreads) {
  if (world().size() > 1) GTEST_SKIP() << "ranks are threads here, so one process runs it";
  const Patience patience(15);
  for (std::uint64_t seed = 5001; seed <= 5060 && !patience.is_over(); ++seed) {
    const auto system = system_of(seed, 2 + static_cast<int>(seed % 7));
    const auto result = run_in_threads(system);
    for (const auto& error : result.errors) ASSERT_EQ(error, "") << "seed " << seed;
    ASSERT_EQ(difference(run_serially(system_of(seed, 1)), result.whole), "") << "seed " << seed;
  }
}

// A group never becomes complete. Every rank ends, and reports the same waits as a run in the serial order.
TEST(Kernel, EndsAndKnowsWhoWaitsIfTheModelIsStuck) {
  if (world().size() > 1) GTEST_SKIP() << "ranks are threads here, so one process runs it";
  std::size_t waiting = 0;
  const Patience patience(10);
  for (std::uint64_t seed = 7001; seed <= 7006 && !patience.is_over(); ++seed) {
    for (int ranks = 1; ranks <= 8; ++ranks) {
      const auto expected = run_serially(make_stuck_system(seed, 1));
      const auto system = make_stuck_system(seed, ranks);
      const auto stuck_group = std::uint64_t{1} << (system.groups.size() - 1);
      for (const auto groups : expected.waits_for) waiting += (groups & stuck_group) != 0 ? 1U : 0U;
      ASSERT_EQ(expected.waits_for[0] & stuck_group, 0U);
      if (ranks == 1) continue;
      const auto result = run_in_threads(system);
      for (const auto& error : result.errors) ASSERT_EQ(error, "") << "seed " << seed << " on " << ranks << " ranks";
      ASSERT_EQ(difference(expected, result.whole), "") << "seed " << seed << " on " << ranks << " ranks";
    }
  }
  EXPECT_GT(waiting, 10U);
}

/// Every rank that does not end by itself says where it stands, or has been ended by one that did.
void expect_no_progress(const InThreads& result, const std::string& what) {
  std::size_t reports = 0;
  for (const auto& error : result.errors) {
    if (error.empty() || error == ended_by_another) continue;
    ++reports;
    EXPECT_TRUE(error.starts_with("1 no progress for 0.2 s: client events handled to ")) << what << ": " << error;
    EXPECT_NE(error.find("; random model\n"), std::string::npos) << what << ": " << error;
  }
  EXPECT_GE(reports, 1U) << what;
}

// One of three ranks never answers. The watchdog ends the run on the others and says that there is no progress.
TEST(Kernel, WatchdogReportsASilentRank) {
  if (world().size() > 1) GTEST_SKIP() << "ranks are threads here, so one process runs it";
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    auto system = make_system(seed, 3);
    system.watchdog_seconds = 0.2;
    const Rank silent(static_cast<int>(seed % 3));
    const auto result =
        run_in_threads(system, [&](Hub& hub, Rank rank) { return rank == silent ? nullptr : hub.transport(rank); });
    expect_no_progress(result, fmt::format("seed {}", seed));
    EXPECT_EQ(result.errors[silent.index()], "");
  }
}

// The transport of one rank loses a message. The watchdog ends the run and says that there is no progress.
TEST(Kernel, WatchdogReportsALostMessage) {
  if (world().size() > 1) GTEST_SKIP() << "ranks are threads here, so one process runs it";
  int lost = 0, channels = 0;
  for (std::uint64_t seed = 1; seed <= 8 && lost < 4; ++seed) {
    auto system = make_system(seed, 3);
    system.watchdog_seconds = 0.2;
    std::atomic<bool> is_lost = false;
    const auto result = run_in_threads(system, [&](Hub& hub, Rank rank) {
      return std::make_unique<LosingTransport>(hub.transport(rank), rank == Rank(1) ? &is_lost : nullptr);
    });
    if (!is_lost) continue;
    ++lost;
    expect_no_progress(result, fmt::format("seed {}", seed));
    for (const auto& error : result.errors) channels += error.find("  channel with rank ") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(lost, 4);
  EXPECT_GE(channels, 1);  // the first to give up may have no neighbours
}

// A model promises more than it can keep. The run ends on every rank with the LPs and both times in the message, or
// has, by the timing, the right result.
TEST(Kernel, CatchesBrokenPromises) {
  if (world().size() > 1) GTEST_SKIP() << "ranks are threads here, so one process runs it";
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto system = make_system(seed, 3);
    system.sight = Sight::exact;
    system.lie = Time::from_ps(100 * system.spread);
    const auto result = run_in_threads(system);
    bool failed = false;
    for (const auto& error : result.errors) {
      if (error.empty() || error == ended_by_another) continue;
      failed = true;
      EXPECT_TRUE(error.starts_with("1 causality: an event of LP ")) << error;
      EXPECT_NE(error.find(" for LP "), std::string::npos) << error;
      EXPECT_NE(error.find(" ps already. This is a fault of Orrery"), std::string::npos) << error;
    }
    caught += failed ? 1 : 0;
    if (!failed) {
      EXPECT_EQ(difference(run_serially(make_system(seed, 1)), result.whole), "")
          << "seed " << seed << ": a broken promise went unnoticed";
    }
  }
  EXPECT_GE(caught, 5);
  fmt::print("{} of 40 broken promises came to light\n", caught);
}

}  // namespace
}  // namespace orrery::pdes::test
