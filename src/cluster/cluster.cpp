#include "orrery/cluster/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "formula_slowdown.hpp"
#include "orrery/base/error.hpp"
#include "orrery/cluster/arrivals.hpp"
#include "orrery/cluster/placement.hpp"
#include "simulated_slowdown.hpp"

namespace orrery::cluster {
namespace {

[[noreturn]] void refuse_cluster(std::string key, std::string_view found, std::string_view expected = {}) {
  throw Error(ErrorCode::bad_input, {.key = std::move(key)}, found, expected);
}

template <class AnyFigures, class Visit>
void visit_figures(AnyFigures& f, Visit visit) {
  visit(f.jobs);
  for (auto* const d : {&f.wait, &f.run, &f.jct, &f.slowdown, &f.bounded_slowdown})
    for (auto* const value : {&d->mean, &d->median, &d->p95, &d->p99}) visit(*value);
  for (auto* const value : {&f.waited, &f.stops, &f.lost, &f.energy}) visit(*value);
}

template <class AnySummary, class Visit>
void visit_numbers(AnySummary& s, Visit visit) {
  visit_figures(s.all, visit);
  for (auto& figures : s.classes) visit_figures(figures, visit);
  for (auto* const value :
       {&s.makespan, &s.utilisation, &s.useless, &s.fragmentation, &s.blocked, &s.unplaced, &s.rejected, &s.energy,
        &s.peak_power, &s.largest_ramp, &s.host_failures, &s.stops, &s.lost})
    visit(*value);
}

/// Returns the NPUs of a packed placement of so many in an empty cluster.
std::vector<std::uint32_t> packed_npus(const Options& options, std::uint32_t npus) {
  if (npus > options.places.npus)
    refuse_cluster("cluster.jobs", fmt::format("a job of {} NPUs can never run on {}", npus, options.places.npus));
  Places places = options.places;
  places.policy = Placing::packed;
  places.torus = {};
  Job job;
  job.npus = npus;
  const auto pool = make_pool(places, options.seed);
  auto found = pool->find(job, 0).npus;
  found.resize(npus);
  return found;
}

/// The step level of one run, which knows what was simulated.
class SharedSteps {
 public:
  SharedSteps(const Options& options, StepLevel& level) : options_(options), memo_(level, most_components) {}

  SimulatedSlowdown slowdown(const Jobs& jobs) {
    std::vector<std::uint32_t> class_of;
    for (const std::string& name : jobs.classes) class_of.push_back(memo_.level().class_of(name));
    std::vector<PlacedJob> packed;
    for (const Job& job : jobs.jobs) packed.push_back({class_of[job.job_class], places_of(job.npus)});
    memo_.learn_alone(packed);
    std::vector<double> seconds;
    for (const PlacedJob& job : packed) seconds.push_back(memo_.alone(job).seconds);
    return {memo_, std::move(class_of), jobs.jobs, std::move(seconds)};
  }
  SharingFound found(const Jobs& jobs) {
    std::vector<std::string> names;
    for (const std::string& name : jobs.classes) {
      const std::uint32_t number = memo_.level().class_of(name);
      names.resize(std::max<std::size_t>(names.size(), number + 1));
      names[number] = name;
    }
    return memo_.found(names);
  }

 private:
  const std::vector<std::uint32_t>& places_of(std::uint32_t npus) {
    auto& found = packed_[npus];
    if (found.empty()) found = packed_npus(options_, npus);
    return found;
  }

  const Options& options_;
  StepMemo memo_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> packed_;
};

}  // namespace

void find_steps(Options& options, StepLevel& steps) {
  for (JobClass& c : options.arrivals.classes) {
    if (c.workload.empty() || c.step > 0) continue;
    std::vector<PlacedJob> placed;
    std::vector<std::uint32_t> sizes = c.npus;
    std::ranges::sort(sizes);
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    for (const std::uint32_t npus : sizes) placed.push_back({steps.class_of(c.name), packed_npus(options, npus)});
    const auto found = steps.alone(placed);
    c.steps_of.clear();
    for (std::size_t i = 0; i < sizes.size(); ++i)
      c.steps_of.emplace_back(sizes[i], campaign::nanoseconds(found[i].seconds));
  }
}

Jobs jobs_of(const Options& options, const std::string& trace, std::uint32_t number) {
  const Arrivals& arrivals = options.arrivals;
  Jobs result;
  if (!arrivals.trace.empty()) {
    auto read =
        read_trace(trace, arrivals.trace.string(), columns_of(arrivals.columns, {.key = "cluster.trace.columns"}));
    result = {std::move(read.jobs), std::move(read.classes), read.left_out};
    for (Job& job : result.jobs) job.priority = job.job_class;
  } else if (!arrivals.jobs.empty()) {
    result = {arrivals.jobs, arrivals.classes_of_jobs, 0};
  } else {
    result.jobs = draw_jobs(arrivals, options.seed + number);
    for (const JobClass& c : arrivals.classes) result.classes.push_back(c.name);
  }
  return result;
}

namespace {

/// Calls body(), which does the same on all ranks with collective calls in between: if it throws, it does so on all of
/// them. Collective.
template <class Body>
void agree_alike(Body body, parallel::Communicator& world) {
  std::exception_ptr failure;
  try {
    body();
  } catch (const Error&) {
    if (world.failure_is_agreed()) throw;
    failure = std::current_exception();
  }
  world.agree([&] {
    if (failure) std::rethrow_exception(failure);
  });
}

/// Returns the summaries of all replications, of which rank r mod `ranks` has packed those of replication r, in order.
/// Collective.
std::vector<Summary> gather_summaries(const std::vector<double>& mine, std::size_t num_classes, std::uint32_t count,
                                      std::uint32_t ranks, parallel::Communicator& world) {
  std::vector<std::int64_t> most = {static_cast<std::int64_t>(num_classes)};
  world.maximum(most);
  std::vector<std::size_t> sizes;
  const auto all = world.all_gather(std::span<const double>(mine), &sizes);
  std::vector<const double*> next;
  const double* begin = all.data();
  for (const std::size_t size : sizes) {
    next.push_back(begin);
    begin += size;
  }
  std::vector<Summary> summaries(count);
  for (std::uint32_t r = 0; r < count; ++r) {
    summaries[r].classes.resize(static_cast<std::size_t>(most.front()));
    visit_numbers(summaries[r], [&](auto& number) {
      number = static_cast<std::remove_reference_t<decltype(number)>>(*next[r % ranks]++);
    });
  }
  return summaries;
}

}  // namespace

Found run(const Options& options, const std::string& trace, const Keep& keep, StepLevel* steps,
          parallel::Communicator& world) {
  Found found;
  const bool simulates = options.rules.sharing == Sharing::simulate;
  std::optional<SharedSteps> shared;
  if (simulates) shared.emplace(options, *steps);
  const auto ranks = simulates ? 1U : static_cast<std::uint32_t>(world.size());
  const auto rank = simulates ? 0U : static_cast<std::uint32_t>(world.rank().value());
  std::vector<double> mine;
  std::size_t num_classes = 0;
  const auto replicate = [&] {
    for (std::uint32_t r = 0; r < options.replications; ++r) {
      if (r % ranks != rank) continue;
      Jobs jobs = jobs_of(options, trace, r);
      num_classes = jobs.classes.size();
      FormulaSlowdown formula(jobs.jobs, options.rules);
      std::optional<SimulatedSlowdown> simulated;
      if (shared) simulated.emplace(shared->slowdown(jobs));
      Slowdown* const slowdown = simulated                                   ? static_cast<Slowdown*>(&*simulated)
                                 : options.rules.sharing == Sharing::formula ? &formula
                                                                             : nullptr;
      Schedule schedule = cluster::schedule(jobs.jobs, options, options.seed + r, slowdown, r == 0 ? keep : Keep{});
      Summary summary = summarise(jobs.jobs, schedule, options, num_classes, options.places.npus);
      visit_numbers(summary, [&](auto number) { mine.push_back(static_cast<double>(number)); });
      if (shared && r + 1 == options.replications) found.sharing = shared->found(jobs);
      if (r == 0) {
        found.jobs = std::move(jobs);
        found.schedule = std::move(schedule);
      }
    }
  };
  if (simulates)
    agree_alike(replicate, world);
  else
    world.agree(replicate);
  if (simulates && !world.is_root()) mine.clear();
  found.summaries = gather_summaries(mine, num_classes, options.replications, ranks, world);
  return found;
}

namespace {

/// Throws for cubes, and circuits that join them, that contradict the other options.
void require_cubes(const Options& options) {
  const Places& places = options.places;
  const bool has_cubes = places.cubes[0] > 0;
  if (has_cubes && places.policy != Placing::torus)
    refuse_cluster("cluster.cubes", "cubes are parts of a torus", "placement: torus, and cluster.torus");
  for (std::size_t i = 0; has_cubes && i < 3; ++i)
    if (places.torus[i] % places.cubes[i] != 0)
      refuse_cluster("cluster.cubes", fmt::format("{} NPUs are no whole cubes of {}", places.torus[i], places.cubes[i]),
                     "divisors of cluster.torus");
  if (places.circuits && !has_cubes) refuse_cluster("cluster.circuits", "circuits join cubes", "cluster.cubes");
  if (places.circuits && places.wrap)
    refuse_cluster("cluster.wrap", "found true with circuits, which join any cubes", "one of them");
  if (options.rules.switching > 0 && !places.circuits)
    refuse_cluster("cluster.switching-time", "no circuits are switched", "cluster.circuits: true");
  if (places.circuits && options.rules.sharing == Sharing::simulate)
    refuse_cluster("cluster.sharing", "jobs in cubes that circuits join share no links", "sharing: none");
}

}  // namespace

void validate(const Options& options, bool overload) {
  const Places& places = options.places;
  const Rules& rules = options.rules;
  if (rules.preemption && rules.admission != Admission::priority)
    refuse_cluster("cluster.preemption", "preemption needs admission: priority");
  if (places.policy == Placing::torus && places.torus[0] == 0)
    refuse_cluster("cluster.torus", "the key is missing", "three sizes, for placement: torus");
  require_cubes(options);
  if (places.policy != Placing::torus && places.torus[0] > 0)
    refuse_cluster("cluster.placement", "found another policy than torus", "torus, which cluster.torus is for");
  if (places.npus == 0)
    refuse_cluster("cluster.npus", "the key is missing, and there is no system", "a number of NPUs");
  if (places.leaf > 0 && places.leaf % places.npus_per_host != 0)
    refuse_cluster("cluster.leaf", fmt::format("{} NPUs are no whole hosts of {}", places.leaf, places.npus_per_host));
  if (rules.sharing == Sharing::formula && rules.links == SharedLinks::uplinks &&
      (places.policy == Placing::none || places.policy == Placing::torus))
    refuse_cluster("cluster.sharing", "uplinks are shared by places below leaves",
                   "placement: first, contiguous, packed or random");
  if (places.npus_per_host > 1 && (places.policy == Placing::none || places.policy == Placing::torus))
    refuse_cluster("cluster.npus-per-host", "whole hosts need places",
                   "placement: first, contiguous, packed or random");
  if (options.failures.any() && places.policy == Placing::none)
    refuse_cluster("cluster.hosts", "which jobs a host has is not known with placement: none",
                   "placement: first, contiguous, packed, random or torus");
  const auto raises = [&](const auto& item) { return std::max(item.power, options.site.running) > options.site.idle; };
  if (options.site.ramp > 0 && options.site.running <= options.site.idle &&
      std::ranges::none_of(options.arrivals.classes, raises) && std::ranges::none_of(options.arrivals.jobs, raises))
    refuse_cluster("cluster.site.ramp", "starts of jobs raise no power", "site.running above site.idle");
  if (rules.sharing == Sharing::simulate && places.policy == Placing::none)
    refuse_cluster("cluster.sharing", "simulate needs NPUs for each job",
                   "placement: first, contiguous, packed, random or torus");
  const Arrivals& arrivals = options.arrivals;
  // Beside a list or a trace, classes without a rate say what the workloads of its jobs are.
  const bool has_jobs = !arrivals.jobs.empty();
  const bool has_classes =
      std::ranges::any_of(arrivals.classes, [](const JobClass& c) { return c.workload.empty() || c.rate > 0; });
  const bool has_trace = !arrivals.trace.empty();
  if ((has_jobs && has_classes) || (has_trace && (has_jobs || has_classes)))
    refuse_cluster("cluster", "classes, a list of jobs and a trace exclude each other", "one of them");
  for (std::size_t i = 0; i < arrivals.jobs.size(); ++i)
    if (arrivals.jobs[i].length <= 0)
      refuse_cluster(fmt::format("cluster.jobs.{}.length", i), "found 0 s", "more than 0 s");
  if (has_jobs || has_trace) return;
  for (std::size_t k = 0; k < arrivals.classes.size(); ++k) {
    const JobClass& c = arrivals.classes[k];
    if (const auto most = *std::ranges::max_element(c.npus); most > places.npus)
      refuse_cluster(fmt::format("cluster.classes.{}", k),
                     fmt::format("a job of {} NPUs can never run on {}", most, places.npus));
    if (!(c.rate > 0)) refuse_cluster(fmt::format("cluster.classes.{}.rate", k), "the key is missing or 0", "a rate");
  }
  if (arrivals.count == 0 && arrivals.duration == 0)
    refuse_cluster("cluster.jobs", "neither jobs nor duration is given", "one of them");
  const double load = load_of(arrivals, places.npus);
  if (load >= 1 && !overload && !rules.queue_limit)
    refuse_cluster("cluster",
                   fmt::format("the load is {:.2f} (NPU-hours asked for in an hour over NPUs); the queue grows "
                               "for ever. Use --overload to see its beginning",
                               load));
}

}  // namespace orrery::cluster
