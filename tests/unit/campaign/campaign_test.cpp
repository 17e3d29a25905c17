#include "orrery/campaign/campaign.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "orrery/base/error.hpp"
#include "orrery/campaign/formulas.hpp"
#include "orrery/campaign/optimum.hpp"
#include "orrery/campaign/options.hpp"

namespace orrery::campaign {
namespace {

constexpr Nanoseconds hour = 3600 * second;
using Job = campaign::Setup;  // GoogleTest has a Setup of its own

/// Returns crashes at a rate in a day, without repairs.
Process crashes(double rate, Per per = Per::host) {
  Process process;
  process.name = "x";
  process.rate = rate;
  process.per = per;
  process.repairs = false;
  return process;
}

/// Returns a job of four hosts with ten hours of work and a checkpoint of a minute in each hour.
Job four_hosts() {
  Job setup;
  setup.hosts.active = 4;
  setup.work = 10 * hour;
  setup.restart.start = Spread::fixed(600);
  setup.tiers = {{.interval = hour, .stall = 60 * second}};
  setup.processes = {crashes(0)};
  return setup;
}

/// Returns failures of process 0 of host 0 at these seconds.
std::vector<Recorded> at(std::initializer_list<double> times) {
  std::vector<Recorded> failures;
  for (const double time : times) failures.push_back({nanoseconds(time), 0, 0});
  return failures;
}

void expect_sum(const Row& row) {
  EXPECT_EQ(std::accumulate(row.times.begin(), row.times.end(), Nanoseconds{0}), row.time);
}

// Without failures the time is that of the work and of nine checkpoints, exactly: there is none at the end.
TEST(Campaign, WithoutFailuresTheTimeIsWorkAndStalls) {
  const Row row = replicate(four_hosts(), 0);
  EXPECT_EQ(row.time, 10 * hour + 9 * 60 * second);
  EXPECT_EQ(row.in(State::stall), 9 * 60 * second);
  expect_sum(row);
  Job with_final = four_hosts();
  with_final.final_checkpoint = true;
  EXPECT_EQ(replicate(with_final, 0).time, 10 * hour + 10 * 60 * second);
}

// A campaign of 2,000 days is longer than Time can be, and still exact.
TEST(Campaign, LastsLongerThan106Days) {
  Job setup = four_hosts();
  setup.work = 2000 * day;
  EXPECT_EQ(replicate(setup, 0).time, 2000 * day + (2000 * 24 - 1) * 60 * second);
}

// A crash at 9,000 s goes back to the checkpoint at two hours, which was durable at 7,320 s.
TEST(Campaign, CrashLosesWorkSinceTheCheckpoint) {
  Job setup = four_hosts();
  setup.recorded = at({9000});
  const Row row = replicate(setup, 0);
  EXPECT_EQ(row.in(State::lost), 1680 * second);
  EXPECT_EQ(row.in(State::restart), 600 * second);
  EXPECT_EQ(row.time, 38'820 * second);
  expect_sum(row);
}

// A restart that is struck begins anew, and the lost work is booked once.
TEST(Campaign, LostWorkIsBookedOnce) {
  Job setup = four_hosts();
  setup.recorded = at({9000, 9300, 9500});
  const Row row = replicate(setup, 0);
  EXPECT_EQ(row.in(State::lost), 1680 * second);
  EXPECT_EQ(row.in(State::restart), (300 + 200 + 600) * second);
  EXPECT_EQ(row.failures, 3U);
  EXPECT_EQ(row.restarts, 1U);
}

// An asynchronous checkpoint at 7,200 s of work is durable at 8,105 s only: a crash before that goes back an hour more.
TEST(Campaign, CheckpointThatIsNotDurableIsNotTaken) {
  Job setup = four_hosts();
  setup.tiers = {{.interval = hour, .stall = 5 * second, .durable = 900 * second}};
  setup.recorded = at({8104});
  EXPECT_EQ(replicate(setup, 0).in(State::lost), (8104 - 3600 - 10) * second);
  setup.recorded = at({8106});
  EXPECT_EQ(replicate(setup, 0).in(State::lost), (8106 - 7200 - 10) * second);
}

// A silent corruption that is found later goes back to before it, although newer checkpoints are there; with one kept
// checkpoint that is the beginning.
TEST(Campaign, SilentCorruptionGoesBackToBeforeIt) {
  Job setup = four_hosts();
  setup.processes.front().symptom = Symptom::silent;
  setup.processes.front().detect = Spread::fixed(9000);
  setup.recorded = at({9000});
  EXPECT_EQ(replicate(setup, 0).in(State::lost), (18'000 - 4 * 60 - 7200) * second);
  setup.tiers.front().keep = 1;
  EXPECT_EQ(replicate(setup, 0).in(State::lost), (18'000 - 4 * 60) * second);
}

// A failure of a group destroys a tier that only survives failures of hosts.
TEST(Campaign, GroupDestroysNearTier) {
  Job setup = four_hosts();
  setup.hosts.group_size = 4;
  setup.tiers = {{.interval = 600 * second, .survives_group = false}, {.interval = hour, .read = 300 * second}};
  setup.processes = {crashes(0), crashes(0, Per::group)};
  setup.tiers[0].survives_host = true;
  setup.recorded = {{5000 * second, 0, 0}, {7900 * second, 1, 1}};
  const Row row = replicate(setup, 0);
  // 5,000 s: back to 4,800; restart until 5,600. 7,900 s: 7,100 of work are done, of which 3,600 are in the far tier.
  EXPECT_EQ(row.in(State::lost), (200 + 3500) * second);
  EXPECT_EQ(row.in(State::restart), (600 + 600 + 300) * second);
}

// Draws depend on the number of the replication alone: rows do not change with their count, nor with another process
// that never strikes.
TEST(Campaign, DrawsDependOnTheirKeyAlone) {
  Job setup = four_hosts();
  setup.processes.front().rate = 2;
  setup.seed = 5;
  const auto serial = parallel::make_serial();
  const auto few = simulate(setup, 3, *serial), many = simulate(setup, 7, *serial);
  for (std::size_t r = 0; r < few.size(); ++r) EXPECT_EQ(few[r], many[r]);
  EXPECT_NE(few[0].time, few[1].time);
  Job with_idle = setup;
  with_idle.processes.push_back(crashes(0));
  EXPECT_EQ(replicate(with_idle, 2).times, few[2].times);
}

// With exponential crashes alone the mean time is Daly's, within four standard errors; another setting too.
TEST(Campaign, ExponentialCrashesTakeDalysTime) {
  for (const double mtbf : {3600.0, 14'400.0}) {
    Job setup;
    setup.hosts.active = 1;
    setup.work = 50 * hour;
    setup.final_checkpoint = true;
    setup.restart.start = Spread::fixed(300);
    setup.tiers = {{.interval = 900 * second, .stall = 60 * second}};
    setup.processes = {crashes(86'400 / mtbf, Per::job)};
    const auto rows = simulate(setup, 400, *parallel::make_serial());
    const auto time = estimate(values_of(rows, [](const Row& row) { return seconds(row.time); }));
    EXPECT_NEAR(time.mean, daly_time(mtbf, 900, 60, 300, 180'000), 4 * time.standard_error(rows.size()));
    EXPECT_NEAR(exact_ettr(setup), 180'000 / daly_time(mtbf, 900, 60, 300, 180'000), 1e-12);
  }
}

// Only the unit that failed is renewed: 50 hosts with Weibull lives of shape 0.7 and a mean of 20 days have 97.43
// failures in 30 days (renewal equation); drawing all ages anew at each restart would give many more.
TEST(Campaign, WeibullRenewsOnlyTheUnitThatFailed) {
  Job setup;
  setup.hosts.active = 50;
  setup.duration = 30 * day;
  setup.processes = {crashes(1.0 / 20)};
  setup.processes.front().weibull_shape = 0.7;
  const auto rows = simulate(setup, 200, *parallel::make_serial());
  const auto failures = estimate(values_of(rows, [](const Row& row) { return static_cast<double>(row.failures); }));
  EXPECT_NEAR(failures.mean, 97.43, 4 * failures.standard_error(rows.size()));
}

// ETTR is of the wall time, goodput of the hosts that the job has: a standby that is never used halves the goodput of
// a job of one host.
TEST(Campaign, GoodputCountsStandbys) {
  Job setup = four_hosts();
  setup.hosts.active = 1;
  const Row alone = replicate(setup, 0);
  setup.hosts.standby = 1;
  const Row with_standby = replicate(setup, 0);
  EXPECT_DOUBLE_EQ(alone.ettr(), with_standby.ettr());
  EXPECT_NEAR(with_standby.goodput(1), alone.goodput(1) / 2, 1e-12);
}

// The job waits for the hosts that it needs; with wait_for_standbys for all of them. Both hosts fail,
// a thousand seconds apart, and are repaired for 10,000 s.
TEST(Campaign, WaitsForHostsOrStandbys) {
  Job setup = four_hosts();
  setup.hosts.active = 1;
  setup.hosts.standby = 1;
  setup.tiers.clear();
  setup.processes.front().repairs = true;
  setup.repair.any = true;
  setup.repair.automatic = Spread::fixed(10'000);
  setup.recorded = {{1000 * second, 0, 0}, {2000 * second, 1, 0}, {3000 * second, 0, 0}};
  EXPECT_EQ(replicate(setup, 0).in(State::wait), 9000 * second);
  setup.hosts.wait_for_standbys = true;
  EXPECT_EQ(replicate(setup, 0).in(State::wait), 10'000 * second);
}

// One standby more does not lower the mean ETTR, and a longer detection does not raise it, beyond the error.
TEST(Campaign, IsMonotonic) {
  Job setup = four_hosts();
  setup.work = 400 * hour;
  setup.hosts.active = 8;
  setup.hosts.standby = 1;
  setup.restart.select = 1800 * second;
  setup.processes = {crashes(0.2)};
  setup.processes.front().repairs = true;
  setup.repair.any = true;
  setup.repair.automatic = {.kind = SpreadKind::exponential, .mean = 20'000};
  const auto ettr = [](const Job& s) {
    const auto rows = simulate(s, 100, *parallel::make_serial());
    return estimate(values_of(rows, [](const Row& row) { return row.ettr(); }));
  };
  const auto base = ettr(setup);
  Job more = setup;
  ++more.hosts.standby;
  EXPECT_GE(ettr(more).mean, base.mean - base.half_width);
  Job later = setup;
  later.processes.front().detect = Spread::fixed(600);
  EXPECT_LE(ettr(later).mean, base.mean + base.half_width);
}

// The best interval of a search is within a step of the factor of the exact optimum, and the search compares in pairs.
TEST(Campaign, SearchFindsTheOptimum) {
  Job setup;
  setup.hosts.active = 1;
  setup.work = 200 * hour;
  setup.restart.start = Spread::fixed(60);
  setup.tiers = {{.interval = 900 * second, .stall = 60 * second}};
  setup.processes = {crashes(12, Per::job)};
  const auto search = search_intervals(setup, 10 * second, 60, *parallel::make_serial());
  const double best = seconds(search.best().setup.tiers.front().interval);
  EXPECT_NEAR(std::log2(best / optimum_interval(7200, 60)), 0, 1.01);
  EXPECT_FALSE(search.is_at_edge);
  EXPECT_EQ(search.best().difference.mean, 0);
}

// Bad settings name their key.
TEST(Campaign, RefusesWhatCannotBe) {
  Options options;
  options.duration = day;
  options.hosts.active = 4;
  options.step.time = 10 * second;
  Times times{.step = 10 * second, .tokens = 0, .tiers = {}, .speeds = {}};
  const auto key_of = [&] {
    try {
      setup_of(options, times, 0);
    } catch (const Error& error) {
      return error.place().key + ": " + error.text();
    }
    return std::string();
  };
  EXPECT_EQ(key_of(), "");
  options.tiers.resize(2);
  options.tiers[0].interval = {Work::Unit::steps, 20};
  options.tiers[1].interval = {Work::Unit::steps, 50};
  times.tiers = {{}, {}};
  EXPECT_EQ(key_of(), "campaign.checkpoint.1.interval: 50 steps is no multiple of 20 steps, the interval of tier 0");
  options.tiers.pop_back();
  times.tiers = {{.stall = second, .durable = 301 * second, .read = 0}};
  EXPECT_EQ(
      key_of(),
      "campaign.checkpoint.0: a checkpoint takes 301 s to be durable, but one is due every 201 s; use at least 30 "
      "steps");
  times.tiers = {{}};
  options.processes = {{.process = crashes(0, Per::group)}};
  EXPECT_TRUE(key_of().starts_with("campaign.failures.0.per: ")) << key_of();
  options.processes = {{.process = crashes(1e12)}};
  EXPECT_TRUE(key_of().starts_with("campaign: 100 replications would have about 4e+14 failures")) << key_of();
}

// Values of the closed forms that were computed elsewhere in double.
TEST(CampaignFormulas, AgreeWithKnownValues) {
  EXPECT_NEAR(young_interval(6480, 120), 1247.0765814495917, 1e-9);
  EXPECT_NEAR(daly_interval(6480, 120), 1168.3595820477908, 1e-9);
  EXPECT_NEAR(optimum_interval(6480, 120), 1168.3928788137841, 1e-6);
  EXPECT_NEAR(approximate_ettr(86'400 / (512 * 0.0065), 3600, 0, 300), 0.9191111111111111, 1e-12);
  EXPECT_EQ(hosts_in_repair(0, 0.99), 0U);
  EXPECT_EQ(hosts_in_repair(13.1, 0.99), 22U);
}

// Quantiles of distributions: a lognormal has its median at one half, a bounded Pareto its bounds at the ends.
TEST(CampaignSpread, HasItsQuantiles) {
  EXPECT_NEAR((Spread{.kind = SpreadKind::lognormal, .mean = 20, .median = 6}.quantile(0.5)), 6, 1e-12);
  const Spread pareto{.kind = SpreadKind::pareto, .least = 1, .most = 100, .shape = 1.5};
  EXPECT_NEAR(pareto.quantile(1e-12), 1, 1e-9);
  EXPECT_NEAR(pareto.quantile(1 - 1e-12), 100, 1e-6);
  EXPECT_EQ(nanoseconds(0.1), 100'000'000);
  EXPECT_EQ(nanoseconds(1.0 / 3), 333'333'334);
}

// A recorded failure did happen: one of a process with `while: running` strikes a restart at 9,300 s too, which then
// begins anew. One of a host that is not in the job stays unseen.
TEST(Campaign, RecordedFailuresStrikeWheneverTheirHostIsActive) {
  Job setup = four_hosts();
  setup.processes.front().exposure = Exposure::running;
  setup.recorded = at({9000, 9300});
  const Row row = replicate(setup, 0);
  EXPECT_EQ(row.failures, 2U);
  EXPECT_EQ(row.unseen, 0U);
  EXPECT_EQ(row.in(State::restart), (300 + 600) * second);
  setup.hosts.pool = 1;
  setup.recorded = {{9000 * second, 4, 0}};
  EXPECT_EQ(replicate(setup, 0).unseen, 1U);
  expect_sum(row);
}

// A job of two replicas that has lost one grows at the end of a stall. Checkpoints of each hour take no time, those of
// every second hour a minute: it works two hours at half the speed. Without the latter it never grows.
TEST(Campaign, GrowsAtTheEndOfAStallThatTakesTime) {
  Job setup = four_hosts();
  setup.hosts.active = 2;
  setup.restart = {};
  setup.elastic = {.hosts_per_replica = 1, .least = 1, .speeds = {{1, 0.5}}};
  setup.repair.any = true;
  setup.repair.automatic = Spread::fixed(1000);
  setup.processes.front().repairs = true;
  setup.recorded = at({1800});
  setup.tiers = {{.interval = hour, .stall = 0}, {.interval = 2 * hour, .stall = 60 * second}};
  const Row row = replicate(setup, 0);
  EXPECT_EQ(row.in(State::slow), 2 * hour);
  EXPECT_EQ(row.selections, 3U);
  expect_sum(row);
  setup.tiers.pop_back();
  EXPECT_EQ(replicate(setup, 0).in(State::slow), 10 * hour);
}

}  // namespace
}  // namespace orrery::campaign
