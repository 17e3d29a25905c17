#include "orrery/cluster/cluster.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "orrery/base/error.hpp"
#include "orrery/cluster/arrivals.hpp"
#include "orrery/cluster/formulas.hpp"
#include "orrery/cluster/placement.hpp"

namespace orrery::cluster {
namespace {

using campaign::second;

Job job(double arrival, std::uint32_t npus, double length, std::uint32_t priority = 0) {
  Job result;
  result.arrival = campaign::nanoseconds(arrival);
  result.npus = npus;
  result.length = result.estimate = campaign::nanoseconds(length);
  result.priority = priority;
  return result;
}

Options options_of(std::uint32_t npus, Admission admission, Placing policy = Placing::none, std::uint32_t leaf = 0) {
  Options options;
  options.places = {.npus = npus, .leaf = leaf, .policy = policy};
  options.rules.admission = admission;
  return options;
}

/// Returns the first starts in whole milliseconds.
std::vector<std::int64_t> starts(const std::vector<Job>& jobs, const Options& options) {
  const Schedule found = schedule(jobs, options, 1, nullptr);
  std::vector<std::int64_t> result;
  for (const JobResult& r : found.jobs) result.push_back(r.start / 1'000'000);
  return result;
}

const std::vector<Job> five = {job(0, 6, 10), job(1, 8, 10), job(2, 2, 5), job(3, 2, 20), job(4, 1, 3)};

// Under FIFO the first of the queue blocks the others; under EASY later ones fill the holes, but do not delay it.
TEST(Cluster, FifoBlocksAndEasyFillsHoles) {
  EXPECT_EQ(starts(five, options_of(10, Admission::fifo)), (std::vector<std::int64_t>{0, 10000, 10000, 15000, 20000}));
  EXPECT_EQ(starts(five, options_of(10, Admission::easy)), (std::vector<std::int64_t>{0, 10000, 2000, 3000, 7000}));
}

// EASY uses estimates: two short jobs with long estimates may not both take the two NPUs that the first of the queue
// leaves. The second one starts when the first one has ended, at 7 s, and not at 3 s.
TEST(Cluster, EasyUsesEstimatesAndNotLengths) {
  std::vector<Job> jobs = five;
  jobs[2].estimate = 100 * second;
  jobs[3].estimate = 100 * second;
  EXPECT_EQ(starts(jobs, options_of(10, Admission::easy))[2], 2000);  // two NPUs are left beside the first of the queue
  EXPECT_EQ(starts(jobs, options_of(10, Admission::easy))[3], 7000);
}

// Ends come before arrivals, and arrivals before one pass for all: a job that arrives when two others end waits for the
// one that was in the queue.
TEST(Cluster, OnePassForAllEventsOfOneTime) {
  const std::vector<Job> jobs = {job(0, 4, 5), job(0, 4, 5), job(0, 4, 5), job(5, 8, 2)};
  EXPECT_EQ(starts(jobs, options_of(8, Admission::fifo)), (std::vector<std::int64_t>{0, 0, 5000, 10000}));
}

// A preempted job loses what it did since its checkpoint and pays its restart. None is stopped where that does not
// help.
TEST(Cluster, PreemptsOnlyWhereItHelps) {
  Options options = options_of(8, Admission::priority);
  options.rules.preemption = true;
  options.rules.checkpoint_interval = 4 * second;
  options.rules.restart = second;
  const std::vector<Job> jobs = {job(0, 8, 20, 1), job(10, 4, 5, 0)};
  const Schedule found = schedule(jobs, options, 1, nullptr);
  EXPECT_EQ(found.jobs[0].end, 28 * second);
  EXPECT_EQ(found.jobs[0].lost, 16);
  EXPECT_EQ(found.jobs[1].start, 10 * second);
  const std::vector<Job> no_use = {job(0, 4, 20, 0), job(0, 4, 20, 1), job(10, 8, 5, 0)};
  EXPECT_EQ(schedule(no_use, options, 1, nullptr).jobs[1].stops, 0U);
  options.rules.protect = 3600 * second;
  EXPECT_EQ(schedule(jobs, options, 1, nullptr).jobs[0].stops, 0U);
}

// Two jobs of six share the uplink of a leaf of four for the time in which both run: progress is brought up to date,
// and ends are planned anew.
TEST(Cluster, SharingChangesEnds) {
  Options options = options_of(16, Admission::fifo, Placing::first, 4);
  options.rules.sharing = Sharing::formula;
  options.rules.share = 0.5;
  options.arrivals.jobs = {job(0, 6, 10), job(4, 6, 10)};
  options.arrivals.classes_of_jobs = {"job"};
  const Found found = run(options, "", {}, nullptr, *parallel::make_serial());
  EXPECT_EQ(found.schedule.jobs[0].end, 11'500'000'000);
  EXPECT_EQ(found.schedule.jobs[1].end, 15'500'000'000);
}

// `packed` takes the fullest leaf with room; of five, the rest goes to the fullest leaf that can take it.
TEST(ClusterPlacement, PackedFillsLeaves) {
  const auto pool = make_pool({.npus = 16, .leaf = 4, .policy = Placing::packed}, 1);
  const auto place = [&](std::uint32_t npus) {
    const Job j = job(0, npus, 1);
    const Place found = pool->find(j, 0);
    pool->take(found);
    return found.npus;
  };
  EXPECT_EQ(place(3), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(place(2), (std::vector<std::uint32_t>{4, 5}));
  EXPECT_EQ(place(5), (std::vector<std::uint32_t>{8, 9, 10, 11, 3}));
  EXPECT_EQ(place(1), (std::vector<std::uint32_t>{6}));
}

// Blocks of a torus: the first origin with x fastest; rotated where only that fits; round the edge with wrap.
TEST(ClusterPlacement, TorusTakesBlocks) {
  Job j = job(0, 4, 1);
  j.shape = {1, 1, 4};
  Places places{.npus = 16, .torus = {4, 4, 1}, .policy = Placing::torus};
  EXPECT_FALSE(make_pool(places, 1)->fits(j));
  places.rotate = true;
  EXPECT_EQ(make_pool(places, 1)->find(j, 0).npus, (std::vector<std::uint32_t>{0, 4, 8, 12}));
  j.shape = {2, 1, 1};
  j.npus = 2;
  places = {.npus = 4, .torus = {4, 1, 1}, .wrap = true, .policy = Placing::torus};
  const auto pool = make_pool(places, 1);
  pool->take({2, {1, 2}});
  EXPECT_EQ(pool->find(j, 0).npus, (std::vector<std::uint32_t>{3, 0}));
}

// A job of more than half a host takes whole hosts; a smaller one does not.
TEST(ClusterPlacement, LargeJobsTakeWholeHosts) {
  const auto pool = make_pool({.npus = 16, .npus_per_host = 8, .policy = Placing::first}, 1);
  EXPECT_EQ(pool->occupied(job(0, 5, 1)), 8U);
  EXPECT_EQ(pool->occupied(job(0, 4, 1)), 4U);
  pool->take({1, {0}});
  EXPECT_EQ(pool->find(job(0, 5, 1), 0).npus.front(), 8U);
  EXPECT_FALSE(pool->fits(job(0, 9, 1)));
}

/// Returns a class of jobs with exponential lengths, in seconds.
JobClass exponential(double rate, std::vector<std::uint32_t> npus, double mean) {
  JobClass c;
  c.name = "a";
  c.rate = rate;
  c.npus = std::move(npus);
  c.length = {.kind = campaign::SpreadKind::exponential, .mean = mean};
  return c;
}

/// Returns options with two classes on 64 NPUs.
Options mixed(Admission admission, Placing policy) {
  Options options = options_of(64, admission, policy, 8);
  options.arrivals.count = 1500;
  options.arrivals.classes = {exponential(600, {1, 2, 8}, 600), exponential(60, {16, 40}, 600)};
  options.arrivals.classes.front().overestimate = 2;
  return options;
}

// In every combination of policies no NPU has two jobs at a time, all jobs end, and under FIFO starts are in the order
// of arrivals. Little's law is checked in `summarise`.
TEST(Cluster, NoNpuHasTwoJobs) {
  for (const Admission admission : {Admission::fifo, Admission::easy, Admission::sjf, Admission::priority})
    for (const Placing policy : {Placing::first, Placing::contiguous, Placing::packed, Placing::random}) {
      Options options = mixed(admission, policy);
      options.rules.preemption = admission == Admission::priority;
      const Jobs jobs = jobs_of(options, "", 0);
      const Schedule found = schedule(jobs.jobs, options, 1, nullptr, {.places = true, .usage = true});
      summarise(jobs.jobs, found, options, 2, 64);
      for (const Usage& usage : found.usage) EXPECT_EQ(usage.busy + usage.free, 64U);
      std::vector<std::tuple<std::uint32_t, Nanoseconds, Nanoseconds>> uses;
      for (std::size_t i = 0; i < jobs.jobs.size(); ++i)
        if (found.jobs[i].stops == 0)
          for (const std::uint32_t npu : found.places[i].npus)
            uses.emplace_back(npu, found.jobs[i].start, found.jobs[i].end);
      std::ranges::sort(uses);
      for (std::size_t i = 1; i < uses.size(); ++i)
        if (std::get<0>(uses[i]) == std::get<0>(uses[i - 1])) {
          EXPECT_GE(std::get<1>(uses[i]), std::get<2>(uses[i - 1]));
        }
      if (admission == Admission::fifo) {
        for (std::size_t i = 1; i < jobs.jobs.size(); ++i) {
          EXPECT_GE(found.jobs[i].start, found.jobs[i - 1].start);
        }
      }
    }
}

// Jobs of one NPU with exponential lengths wait as Erlang's formula says; a queue of no places loses Erlang's share.
TEST(Cluster, QueuesAgreeWithErlang) {
  Options options = options_of(8, Admission::fifo);
  options.arrivals.count = 20'000;
  options.arrivals.classes = {exponential(6.4 * 86'400, {1}, 1)};
  options.replications = 4;
  const Found found = run(options, "", {}, nullptr, *parallel::make_serial());
  double wait = 0;
  for (const Summary& summary : found.summaries) wait += summary.all.wait.mean / 4;
  EXPECT_NEAR(wait, mean_wait(8, 6.4, 1), 0.05);
  options.rules.queue_limit = 0;
  EXPECT_NEAR(run(options, "", {}, nullptr, *parallel::make_serial()).summaries.front().rejected, erlang_b(8, 6.4),
              0.02);
}

// An interval from batches is wider than one from single waits, which depend on each other.
TEST(Cluster, BatchMeansAreWiderThanSingleWaits) {
  Options options = options_of(1, Admission::fifo);
  options.arrivals.count = 20'000;
  options.arrivals.classes = {exponential(0.9 * 86'400, {1}, 1)};
  const Found found = run(options, "", {}, nullptr, *parallel::make_serial());
  const double mean = found.summaries.front().all.wait.mean;
  EXPECT_GT(half_width_of_waits(found.jobs.jobs, found.schedule, 0), 3 * 1.96 * mean / std::sqrt(20'000.0));
}

// Traces: columns by name, dates, rows of 0 NPUs left out, and faults with their line.
TEST(ClusterTrace, ReadsColumns) {
  const TraceColumns acme = columns_of("acme", {});
  const Trace trace = read_trace(
      "job_id,type,gpu_num,submit_time,duration\na,x,8,2023-03-01 00:00:10,60\nb,y,0,2023-03-01 00:00:11,5\n"
      "c,x,2,2023-03-01 00:00:00,7.5\n",
      "acme.csv", acme);
  ASSERT_EQ(trace.jobs.size(), 2U);
  EXPECT_EQ(trace.left_out, 1U);
  EXPECT_EQ(trace.jobs[0].arrival, 10 * second);
  EXPECT_EQ(trace.jobs[1].length, 7'500'000'000);
  const auto error_of = [&](const char* text) {
    try {
      read_trace(text, "acme.csv", acme);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of("job_id,gpu_num,submit_time,duration\na,1,0,-5\n"), "acme.csv:2: end before start");
  EXPECT_EQ(error_of("job_id,gpus,submit_time,duration\n"),
            "acme.csv:1: no column gpu_num; columns are job_id, gpus, submit_time, duration");
  EXPECT_EQ(read_trace("J0,M,2,2,2\n", "x", columns_of("cmu", {})).jobs.front().npus, 8U);
}

// Contradictions name their key.
TEST(Cluster, RefusesWhatCannotBe) {
  const auto error_of = [](const Options& options) {
    try {
      validate(options, false);
    } catch (const Error& error) {
      return error.place().key + ": " + error.text();
    }
    return std::string();
  };
  Options options = mixed(Admission::fifo, Placing::first);
  EXPECT_EQ(error_of(options), "");
  options.rules.preemption = true;
  EXPECT_EQ(error_of(options), "cluster.preemption: preemption needs admission: priority");
  options = mixed(Admission::fifo, Placing::first);
  options.arrivals.classes[0].npus = {65};
  EXPECT_EQ(error_of(options), "cluster.classes.0: a job of 65 NPUs can never run on 64");
  options = mixed(Admission::fifo, Placing::first);
  options.arrivals.classes[0].rate = 60'000;
  EXPECT_NE(error_of(options).find("the queue grows for ever"), std::string::npos);
  EXPECT_NO_THROW(validate(options, true));
}

// A job starts only while the site has power for it.
TEST(Cluster, PowerLimitsJobs) {
  Options options = options_of(8, Admission::fifo);
  options.site = {.power_cap = 5000, .caps = {}, .running = 1000, .idle = 100};
  EXPECT_EQ(starts({job(0, 4, 10), job(0, 4, 10)}, options), (std::vector<std::int64_t>{0, 10000}));
  options.site.power_cap = 8000;
  EXPECT_EQ(starts({job(0, 4, 10), job(0, 4, 10)}, options), (std::vector<std::int64_t>{0, 0}));
}

/// Returns a duration that is always the same.
campaign::Spread fixed(double seconds) { return campaign::Spread::fixed(seconds); }

// Host 0 fails at 100 s and is back at 130 s; both hosts have the same lives. A job on host 0 goes on with what its
// last checkpoint kept: of 100 s of work 90 s are kept, and 60 s are left when it starts again.
TEST(ClusterHosts, AFailureStopsJobsUntilTheRepair) {
  Options options = options_of(16, Admission::fifo, Placing::first);
  options.places.npus_per_host = 8;
  options.failures = {fixed(100), fixed(30)};
  options.rules.checkpoint_interval = 30 * second;
  const std::vector<Job> jobs = {job(0, 8, 150), job(0, 8, 20)};
  const Schedule found = schedule(jobs, options, 1, nullptr, {.places = true});
  EXPECT_EQ(found.jobs[0].stops, 1U);
  EXPECT_EQ(found.jobs[0].end, 190 * second);
  EXPECT_DOUBLE_EQ(found.jobs[0].lost, 10 * 8.0);
  EXPECT_EQ(found.jobs[1].end, 20 * second);
  EXPECT_EQ(found.host_failures, 2U);
  summarise(jobs, found, options, 1, 16);
}

// After a start that raises the power by 8 NPUs of 900 W, nothing starts for 72 s at 100 W a second.
TEST(ClusterHosts, ARampSpreadsStarts) {
  Options options = options_of(32, Admission::fifo);
  options.site = {.power_cap = 0, .caps = {}, .running = 1000, .idle = 100, .ramp = 100};
  const Schedule found = schedule(std::vector<Job>{job(0, 8, 10), job(0, 4, 10), job(0, 4, 10)}, options, 1, nullptr);
  EXPECT_EQ(found.jobs[0].start, 0);
  EXPECT_EQ(found.jobs[1].start, 72 * second);
  EXPECT_EQ(found.jobs[2].start, 108 * second);
  EXPECT_DOUBLE_EQ(found.integrals.largest_ramp, 8 * 900 / 60.0);
}

/// Steps of 1 s. NPU n passes link n / 4; jobs that have a link in common take as many times as long as they are.
class FakeSteps final : public StepLevel {
 public:
  std::uint32_t class_of(const std::string&) override { return 0; }
  std::vector<PlacedJob> signature(std::vector<PlacedJob> jobs) const override { return jobs; }
  std::vector<AloneStep> alone(const std::vector<PlacedJob>& jobs) override {
    std::vector<AloneStep> found;
    for (const PlacedJob& job : jobs) {
      std::set<std::uint32_t> links;
      for (const std::uint32_t npu : job.npus) links.insert(npu / 4);
      found.push_back({1, {links.begin(), links.end()}});
    }
    return found;
  }
  std::vector<std::vector<double>> together(const std::vector<std::vector<PlacedJob>>& components,
                                            const std::vector<std::vector<double>>&) override {
    std::vector<std::vector<double>> factors;
    for (const auto& jobs : components) factors.emplace_back(jobs.size(), static_cast<double>(jobs.size()));
    num_simulated += components.size();
    return factors;
  }

  std::size_t num_simulated = 0;
};

// Jobs 0 and 1 share link 0 (NPUs 2 to 3 and 0 to 1), and job 2 joins them over link 1. Job 3 has links of its own.
TEST(ClusterSharing, ComponentsSlowAllTheirJobs) {
  Options options = options_of(16, Admission::fifo, Placing::first);
  options.rules.sharing = Sharing::simulate;
  options.arrivals.classes_of_jobs = {"job"};
  options.arrivals.jobs = {job(0, 2, 10), job(0, 4, 10), job(5, 2, 10), job(5, 8, 10)};
  FakeSteps steps;
  const Found found = run(options, "", {}, &steps, *parallel::make_serial());
  // Two jobs until 5 s have done 2.5 s each; then three, which go on at a third of the speed until 27.5 s.
  EXPECT_EQ(found.schedule.jobs[0].end, 27 * second + second / 2);
  EXPECT_EQ(found.schedule.jobs[1].end, 27 * second + second / 2);
  // Job 2 has done 7.5 s by then, and is alone.
  EXPECT_EQ(found.schedule.jobs[2].end, 30 * second);
  EXPECT_EQ(found.schedule.jobs[3].end, 15 * second);
  EXPECT_EQ(steps.num_simulated, 2U);
  EXPECT_EQ(found.sharing.components.size(), 2U);
}

// Cells in quotes keep their commas, and quotes that are doubled; noon in Shanghai is four hours in UTC.
TEST(ClusterTrace, ReadsQuotesAndTimeZones) {
  const TraceColumns columns = columns_of("acme", {});
  const Trace found = read_trace(
      "job_id,submit_time,gpu_num,duration,type\n"
      "\"a, \"\"b\"\"\",2023-03-01 12:00:00+08:00,8,60,\"x,y\"\n"
      "c,2023-03-01T04:00:01.5Z,8,60,z\n",
      "t.csv", columns);
  EXPECT_EQ(found.jobs[0].name, "a, \"b\"");
  EXPECT_EQ(found.classes, (std::vector<std::string>{"x,y", "z"}));
  EXPECT_EQ(found.jobs[0].arrival, 0);
  EXPECT_EQ(found.jobs[1].arrival, second + second / 2);
}

}  // namespace
}  // namespace orrery::cluster
