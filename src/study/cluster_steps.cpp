#include "orrery/study/cluster_steps.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/job_context.hpp"
#include "orrery/base/text.hpp"
#include "orrery/run/collect.hpp"
#include "orrery/run/preparation.hpp"
#include "orrery/run/simulation.hpp"

namespace orrery::study {
namespace {

using cluster::PlacedJob;

/// A class whose steps are simulated.
struct SteppedClass {
  std::string name, workload;  ///< the workload in YAML's flow style
  std::uint32_t npus = 1;      ///< NPUs of the workload as given
  std::uint32_t dp = 1;        ///< its data parallelism, which follows the number of NPUs; 0: it is of a fixed size
};

/// A job of a simulation.
struct SteppedJob {
  PlacedJob placed;
  std::uint32_t iterations = 1;
  double start = 0;  ///< seconds
};

/// What a simulation finds of jobs.
struct StepsFound {
  std::vector<Time> times;           ///< [jobs] time from start to end
  std::vector<std::uint32_t> links;  ///< links with traffic
  /// Time after which all of it repeats, as far as the steps show; none if they do not.
  std::optional<Time> period;
};

/// Returns the time by which all collectives of the third step are later than those of the second, where it is one time
/// for all of them, no job has ended before, and each NPU takes part in one. `steps`: of each job.
std::optional<Time> period_of(const run::Preparation& preparation, const results::RankResults& found,
                              std::uint32_t steps) {
  std::map<GroupId, std::vector<const communicator::CollectiveRecord*>> by_group;
  for (const auto& record : found.collectives) by_group[record.group].push_back(&record);
  std::set<NpuId> covered;
  std::optional<Time> period;
  Time last;
  for (auto& [group, records] : by_group) {
    if (records.size() % steps != 0) return {};
    std::ranges::sort(records, {}, &communicator::CollectiveRecord::ordinal);
    const std::size_t of_step = records.size() / steps;
    for (std::size_t i = of_step; i < 2 * of_step; ++i) {
      const auto &before = *records[i], &after = *records[i + of_step];
      if (!period) period = after.finish - before.finish;
      if (after.finish != before.finish + *period || after.first_arrival != before.first_arrival + *period ||
          after.last_arrival != before.last_arrival + *period)
        return {};
      last = std::max(last, after.finish);
    }
    const auto& members = preparation.groups()[group.index()].members;
    covered.insert(members.begin(), members.end());
  }
  for (const auto& npu : found.npus)
    if (npu.finish > Time::zero() && (!covered.contains(npu.npu) || npu.finish < last)) return {};
  return period;
}

class SimulatedSteps final : public cluster::StepLevel {
 public:
  SimulatedSteps(const config::Inputs& inputs, const config::CampaignFile& file, cluster::Options& options,
                 parallel::Communicator& world)
      : inputs_(inputs),
        topology_(file.configuration.topology()),
        steps_(options.rules.sharing == cluster::Sharing::simulate ? options.rules.sharing_steps : 1),
        world_(world) {
    const auto& configuration = file.configuration;
    has_symmetry_ = !configuration.execution.network.graph && configuration.perturbation.empty() &&
                    configuration.execution.noise.variations.all().empty();
    draws_steps_ =
        configuration.execution.noise.amplitude > 0 || !configuration.execution.noise.variations.all().empty();
    for (std::size_t k = 0; k < options.arrivals.classes.size(); ++k) add_class(k, options.arrivals.classes[k]);
  }

  std::uint32_t class_of(const std::string& name) override {
    const auto found = std::ranges::find(classes_, name, &SteppedClass::name);
    if (found == classes_.end())
      throw Error(ErrorCode::bad_input, {.key = "cluster.classes"},
                  fmt::format("class '{}' has no workload, whose steps would be simulated", cited(name)),
                  "workload: {model: ..., parallel: ...}, or another cluster.sharing");
    return static_cast<std::uint32_t>(found - classes_.begin());
  }

  std::vector<PlacedJob> signature(std::vector<PlacedJob> jobs) const override {
    if (!has_symmetry_) return jobs;
    for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d) relabel(d, jobs);
    return jobs;
  }

  std::vector<cluster::AloneStep> alone(const std::vector<PlacedJob>& jobs) override {
    const auto found = divide(jobs.size(), [&](std::size_t i) {
      const StepsFound steps = simulate({{jobs[i], steps_, 0}});
      std::vector<double> packed = {steps.times.front().seconds() / steps_};
      packed.insert(packed.end(), steps.links.begin(), steps.links.end());
      return packed;
    });
    std::vector<cluster::AloneStep> result;
    for (const auto& packed : found) {
      result.push_back({packed.front(), {}});
      for (std::size_t i = 1; i < packed.size(); ++i)
        result.back().links.push_back(static_cast<std::uint32_t>(packed[i]));
    }
    return result;
  }

  std::vector<std::vector<double>> together(const std::vector<std::vector<PlacedJob>>& components,
                                            const std::vector<std::vector<double>>& alone) override {
    const auto found = divide(components.size() * num_offsets, [&](std::size_t i) {
      return together(components[i / num_offsets], alone[i / num_offsets], i % num_offsets);
    });
    std::vector<std::vector<double>> factors;
    for (std::size_t c = 0; c < components.size(); ++c) {
      factors.emplace_back(components[c].size(), 0.0);
      for (std::size_t j = 0; j < components[c].size(); ++j) {
        for (std::size_t k = 0; k < num_offsets; ++k) factors[c][j] += found[c * num_offsets + k][j] / num_offsets;
        factors[c][j] = std::max(1.0, factors[c][j]);
      }
    }
    return factors;
  }

 private:
  static constexpr std::size_t num_offsets = 4;

  void add_class(std::size_t number, cluster::JobClass& c) {
    if (c.workload.empty()) return;
    SteppedClass added{c.name, c.workload, 1, 0};
    const auto place = fmt::format("cluster.classes.{}", number);
    try {
      const auto read = configuration({fmt::format("jobs=[{{workload: {}}}]", c.workload)});
      const config::Job& job = read.workload.jobs.front();
      added.npus = job.num_npus();
      if (const auto& generated = job.workload.generated) added.dp = generated->parallel[workload::Axis::dp];
    } catch (const Error& error) {
      throw Error(ErrorCode::bad_input, {.key = place + ".workload"}, error.what());
    }
    if (c.npus == std::vector<std::uint32_t>{1}) c.npus = {added.npus};
    for (const std::uint32_t npus : c.npus)
      if (npus != added.npus && (added.dp == 0 || std::uint64_t{npus} * added.dp % added.npus != 0))
        throw Error(ErrorCode::bad_input, {.key = place + ".npus"},
                    fmt::format("the workload has {} NPUs with {} replicas, which {} NPUs do not divide into",
                                added.npus, added.dp, npus),
                    "multiples of the NPUs of one replica");
    classes_.push_back(std::move(added));
  }

  config::Configuration configuration(const std::vector<std::string>& settings) const {
    config::Inputs inputs = inputs_;
    inputs.system_only = false;
    inputs.overrides.insert(inputs.overrides.end(), settings.begin(), settings.end());
    return config::read(inputs);
  }

  /// Renumbers the positions of a dimension as its symmetry allows: in the order in which they occur where any two are
  /// alike, and from the first one on in a ring.
  void relabel(std::uint32_t d, std::vector<PlacedJob>& jobs) const {
    using topology::HopSymmetry;
    const auto& dimension = topology_.dimension(d);
    const HopSymmetry symmetry = dimension.shape->symmetry;
    if (symmetry != HopSymmetry::permutations && symmetry != HopSymmetry::rotations) return;
    std::map<std::uint32_t, std::uint32_t> label;
    for (PlacedJob& job : jobs)
      for (std::uint32_t& npu : job.npus) {
        const std::uint32_t at = topology_.coordinate(NpuId(npu), d);
        if (label.empty() || symmetry == HopSymmetry::permutations)
          label.try_emplace(at, static_cast<std::uint32_t>(label.size()));
        const std::uint32_t to = symmetry == HopSymmetry::permutations
                                     ? label.at(at)
                                     : (at + dimension.size - label.begin()->first) % dimension.size;
        npu = npu - at * topology_.stride(d) + to * topology_.stride(d);
      }
  }

  /// Carries out tasks, each on one rank, and returns on all ranks what they found. Collective.
  std::vector<std::vector<double>> divide(std::size_t count,
                                          const std::function<std::vector<double>(std::size_t)>& task) {
    const auto ranks = static_cast<std::size_t>(world_.size());
    std::vector<double> mine;
    world_.agree([&] {
      for (auto i = static_cast<std::size_t>(world_.rank().value()); i < count; i += ranks) {
        const auto found = task(i);
        mine.push_back(static_cast<double>(found.size()));
        mine.insert(mine.end(), found.begin(), found.end());
      }
    });
    std::vector<std::size_t> sizes;
    const auto all = world_.all_gather(std::span<const double>(mine), &sizes);
    std::vector<const double*> next;
    const double* begin = all.data();
    for (const std::size_t size : sizes) {
      next.push_back(begin);
      begin += size;
    }
    std::vector<std::vector<double>> result;
    for (std::size_t i = 0; i < count; ++i) {
      const double*& at = next[i % ranks];
      const auto size = static_cast<std::size_t>(*at++);
      result.emplace_back(at, at + size);
      at += size;
    }
    return result;
  }

  /// Simulates all steps of jobs that begin one after the other. Where few steps show that they repeat, to the
  /// picosecond, the others are not simulated.
  StepsFound simulate(const std::vector<SteppedJob>& jobs) const {
    const std::uint32_t steps = jobs.front().iterations;
    // The last step of several jobs does not count: those that have not ended are alone.
    const std::uint32_t few = jobs.size() > 1 ? 4 : 3;
    const bool may_repeat = !draws_steps_ && steps > few &&
                            std::ranges::all_of(jobs, [&](const SteppedJob& j) { return j.iterations == steps; });
    if (may_repeat) {
      std::vector<SteppedJob> shorter = jobs;
      for (SteppedJob& job : shorter) job.iterations = few;
      StepsFound found = simulate_all(shorter, few);
      if (found.period) {
        for (Time& time : found.times)
          for (std::uint32_t step = few; step < steps; ++step) time = time + *found.period;
        return found;
      }
    }
    return simulate_all(jobs, 0);
  }

  /// Simulates jobs. `recorded`: number of steps, of all of them, that may repeat; 0: it is not asked.
  StepsFound simulate_all(const std::vector<SteppedJob>& jobs, std::uint32_t recorded) const {
    std::string list;
    std::vector<std::string> settings = {{}};
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const SteppedClass& c = classes_[jobs[j].placed.job_class];
      const auto& npus = jobs[j].placed.npus;
      list += fmt::format("{}{{name: job-{}, allocation: [{}], start: {} ns, workload: {}}}", j == 0 ? "" : ", ", j,
                          fmt::join(npus, ", "), std::llround(jobs[j].start * 1e9), c.workload);
      settings.push_back(fmt::format("jobs.{}.workload.iterations={}", j, jobs[j].iterations));
      if (npus.size() != c.npus)
        settings.push_back(fmt::format("jobs.{}.workload.parallel.dp={}", j, npus.size() * c.dp / c.npus));
    }
    settings.front() = fmt::format("jobs=[{}]", list);
    config::Configuration read = configuration(settings);
    read.campaign = {};
    read.cluster = {};
    read.run.fold = false;
    read.run.quiet = true;
    read.run.memory = config::ExcessPolicy::report;
    read.execution.record_iterations = recorded;
    const auto alone = parallel::make_serial();
    const auto preparation = run::prepare(read, *alone);
    const std::function<bool()> stop = [job = JobContext::current()] { return job && job->stop.is_requested(); };
    const auto simulation = run::simulate(*preparation, read.run, stop, *alone);
    if (simulation->stopped_at()) throw Error(ErrorCode::interrupted, "the job was stopped while steps were simulated");
    const auto collected = run::collect(*preparation, *simulation, *alone);
    StepsFound found;
    for (const config::Job& job : read.workload.jobs) {
      Time end = job.start;
      for (const NpuId npu : job.npus()) end = std::max(end, collected.npus[npu.index()].finish);
      found.times.push_back(end - job.start);
    }
    if (recorded > 0) found.period = period_of(*preparation, collected, recorded);
    for (const auto& link : collected.links) found.links.push_back(link.link);
    return found;
  }

  /// Returns the time of a step over that alone of each job, for one of the offsets of the starts.
  std::vector<double> together(const std::vector<PlacedJob>& jobs, const std::vector<double>& alone,
                               std::size_t offset) const {
    const double span = steps_ * std::ranges::max(alone);
    std::vector<SteppedJob> stepped;
    for (std::size_t j = 0; j < jobs.size(); ++j) {
      const double share = static_cast<double>(j * offset % num_offsets) / num_offsets;
      const double fits = std::floor(span / alone[j] + 1e-9);
      stepped.push_back({jobs[j], static_cast<std::uint32_t>(std::clamp(fits, 1.0, 1e6)), share * alone[j]});
    }
    const StepsFound found = simulate(stepped);
    std::vector<double> factors;
    for (std::size_t j = 0; j < jobs.size(); ++j)
      factors.push_back(found.times[j].seconds() / (stepped[j].iterations * alone[j]));
    return factors;
  }

  const config::Inputs& inputs_;
  topology::Topology topology_;
  std::uint32_t steps_;
  parallel::Communicator& world_;
  bool has_symmetry_ = false;
  bool draws_steps_ = false;  // whether steps differ by draws
  std::vector<SteppedClass> classes_;
};

}  // namespace

std::unique_ptr<cluster::StepLevel> make_step_level(const config::Inputs& inputs, const config::CampaignFile& file,
                                                    cluster::Options& options, parallel::Communicator& world) {
  return std::make_unique<SimulatedSteps>(inputs, file, options, world);
}

}  // namespace orrery::study
