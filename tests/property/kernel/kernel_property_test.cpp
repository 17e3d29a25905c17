// Random models on several ranks against the serial order: every LP handles the same events in the same order, whatever
// the partition, the delay of messages and their order on different channels.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "mpi_world.hpp"
#include "random_model.hpp"
#include "transports.hpp"

namespace orrery::pdes::test {
namespace {

using orrery::test::world;

struct Outcome {
  std::vector<Log> logs;  // [LPs]; those of this rank are filled in
  std::uint64_t events = 0, critical_path = 0;
};

Outcome outcome(const RandomModel& model, const Kernel& kernel) {
  return {model.logs(), kernel.statistics().events, kernel.statistics().critical_path};
}

Outcome run_serially(std::uint64_t seed) {
  const auto alone = parallel::make_serial();
  const auto setting = make_setting(seed, 1);
  RandomModel model(setting, Rank(0));
  Kernel kernel(*alone, model, setting.kernel_options(Rank(0)));
  model.start(kernel);
  kernel.run();
  return outcome(model, kernel);
}

Outcome run_rank(const Setting& setting, Rank here, std::unique_ptr<parallel::Transport> transport) {
  RandomModel model(setting, here);
  Kernel kernel(model, setting.kernel_options(here), std::move(transport), here, setting.ranks);
  model.start(kernel);
  kernel.run();
  return outcome(model, kernel);
}

std::uint32_t most_polls(std::uint64_t seed) { return seed % 4 == 0 ? 0 : seed % 4 == 1 ? 3 : 30; }

/// Puts in `whole` what one rank knows.
void merge(Outcome& whole, const Outcome& part, const Setting& setting, Rank rank) {
  whole.logs.resize(part.logs.size());
  for (std::size_t lp = 0; lp < part.logs.size(); ++lp)
    if (setting.host[lp] == rank) whole.logs[lp] = part.logs[lp];
  whole.events += part.events;
  whole.critical_path = std::max(whole.critical_path, part.critical_path);
}

std::string difference(const Outcome& expected, const Outcome& found) {
  for (std::size_t lp = 0; lp < expected.logs.size(); ++lp)
    if (!(expected.logs[lp] == found.logs[lp]))
      return fmt::format("LP {} handled {} events, {} in the serial order", lp, found.logs[lp].events,
                         expected.logs[lp].events);
  if (expected.events != found.events) return fmt::format("{} events, {} serially", found.events, expected.events);
  if (expected.critical_path != found.critical_path)
    return fmt::format("critical path {}, {} serially", found.critical_path, expected.critical_path);
  return {};
}

std::string run_on_all_ranks(std::uint64_t seed) {
  const auto setting = make_setting(seed, world().size());
  Outcome mine;
  try {
    std::unique_ptr<parallel::Transport> transport;
    if (world().size() > 1) {
      transport = std::make_unique<DelayingTransport>(parallel::make_transport(world()), world().size(),
                                                      mix(seed, static_cast<std::uint64_t>(world().rank().value())),
                                                      most_polls(seed));
    }
    mine = run_rank(setting, world().rank(), std::move(transport));
  } catch (const std::exception& error) {
    fmt::print(stderr, "seed {}, rank {}: {}\n", seed, world().rank().value(), error.what());
    parallel::Environment::abort(1);
  }
  std::vector<std::int64_t> figures;
  for (std::size_t lp = 0; lp < mine.logs.size(); ++lp) {
    const bool is_here = setting.host[lp] == world().rank();
    figures.push_back(is_here ? static_cast<std::int64_t>(mine.logs[lp].hash) : 0);
    figures.push_back(is_here ? static_cast<std::int64_t>(mine.logs[lp].events) : 0);
  }
  figures.push_back(static_cast<std::int64_t>(mine.events));
  world().sum(figures);
  auto longest = static_cast<std::int64_t>(mine.critical_path);
  world().maximum(std::span(&longest, 1));
  Outcome whole;
  for (std::size_t lp = 0; lp < mine.logs.size(); ++lp)
    whole.logs.push_back(
        {static_cast<std::uint64_t>(figures[2 * lp]), static_cast<std::uint64_t>(figures[2 * lp + 1])});
  whole.events = static_cast<std::uint64_t>(figures.back());
  whole.critical_path = static_cast<std::uint64_t>(longest);
  return difference(run_serially(seed), whole);
}

/// ORRERY_TEST_SEED repeats one seed; ORRERY_TEST_SECONDS says for how long.
TEST(Kernel, AgreesWithTheSerialOrder) {
  const char* only = std::getenv("ORRERY_TEST_SEED");
  const char* seconds = std::getenv("ORRERY_TEST_SECONDS");
  const double limit = seconds ? std::atof(seconds) : 8;
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

struct InThreads {
  std::vector<std::string> errors;  // [ranks]
  Outcome whole;
};

InThreads run_in_threads(const Setting& setting) {
  Hub hub(setting.ranks);
  InThreads result;
  result.errors.resize(static_cast<std::size_t>(setting.ranks));
  std::vector<Outcome> parts(result.errors.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < setting.ranks; ++r) {
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      try {
        auto transport = std::make_unique<DelayingTransport>(hub.transport(Rank(r)), setting.ranks,
                                                             mix(setting.seed, i), most_polls(setting.seed));
        parts[i] = run_rank(setting, Rank(r), std::move(transport));
      } catch (const Error& error) {
        result.errors[i] = fmt::format("{} {}", static_cast<int>(error.code()), error.what());
        hub.end();
      } catch (const Hub::Ended&) {
        result.errors[i] = "ended by another rank";
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (int r = 0; r < setting.ranks; ++r) merge(result.whole, parts[static_cast<std::size_t>(r)], setting, Rank(r));
  return result;
}

TEST(Kernel, AgreesWithTheSerialOrderInThreads) {
  if (!world().is_root() || world().size() > 2) return;
  for (std::uint64_t seed = 5001; seed <= 5060; ++seed) {
    const auto setting = make_setting(seed, 2 + static_cast<int>(seed % 7));
    const auto result = run_in_threads(setting);
    for (const auto& error : result.errors) ASSERT_EQ(error, "") << "seed " << seed;
    ASSERT_EQ(difference(run_serially(seed), result.whole), "") << "seed " << seed;
  }
}

/// A model that sees further than it can: the run ends on every rank, with the LPs and both times in the message, or
/// has (by luck of the timing) the right result.
TEST(Kernel, CatchesBrokenPromises) {
  if (!world().is_root() || world().size() > 2) return;
  int caught = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    auto setting = make_setting(seed, 3);
    setting.sight = Sight::exact;
    setting.lie = Time::from_ps(100 * setting.spread);
    const auto result = run_in_threads(setting);
    bool failed = false;
    for (const auto& error : result.errors) {
      if (error.empty() || error == "ended by another rank") continue;
      failed = true;
      EXPECT_TRUE(error.starts_with("1 causality: an event of LP ")) << error;
      EXPECT_NE(error.find(" for LP "), std::string::npos) << error;
      EXPECT_NE(error.find(" ps already. This is a fault of Orrery"), std::string::npos) << error;
    }
    caught += failed ? 1 : 0;
    if (!failed) {
      EXPECT_EQ(difference(run_serially(seed), result.whole), "")
          << "seed " << seed << ": a broken promise went unnoticed";
    }
  }
  EXPECT_GE(caught, 5);
  fmt::print("{} of 40 broken promises came to light\n", caught);
}

}  // namespace
}  // namespace orrery::pdes::test
