#include "orrery/study/advice.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/text.hpp"
#include "orrery/config/precision_name.hpp"
#include "orrery/config/variants.hpp"
#include "orrery/results/hints.hpp"
#include "orrery/results/metric_text.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/outline.hpp"
#include "study_trials.hpp"
#include "trial.hpp"

namespace orrery::study {
namespace {

using workload::Axis;
using Settings = std::vector<std::string>;

constexpr double most_nodes = 6e5;     ///< nodes of all changes of a run together
constexpr double nodes_on_links = 40;  ///< a node whose messages are simulated on links costs as much as so many
constexpr double nodes_of_npu = 2;     ///< to set up an NPU costs as much as to simulate so many nodes
constexpr double worth_saying = 0.01;  ///< share of the step time
constexpr std::size_t most_remedies = 3;
constexpr double changed_share = 0.1;  ///< change of an input, for its sensitivity
constexpr std::size_t most_sensitivities = 5;

std::string setting_of(Bandwidth rate) { return fmt::format("{:.6g} GB/s", rate.bytes_per_ns()); }

/// Simulates a run with other settings.
class Changes {
 public:
  explicit Changes(const config::Inputs& inputs) : variants_(inputs) {}

  /// A step with other settings.
  struct Step {
    Time time;
    results::BreakdownOf<double> shares{};
  };

  /// Returns the step with these settings; none if they are not allowed, or what is kept does not fit any more.
  std::optional<Step> step_with(const Settings& settings) {
    for (const bool fold : {true, false}) {
      const auto trial = simulate_trial(variants_, settings, {.fold = fold}, [] { return false; });
      if (!trial || trial->status == TrialStatus::does_not_fit) return {};
      if (trial->status == TrialStatus::done && !trial->metrics.empty())
        return Step{Time::from_ps(std::llround(metric_of(*trial, "step_time") * 1e12)), trial->breakdown};
    }
    return {};
  }

 private:
  config::Variants variants_;
};

/// Dimensions whose bandwidth changes together, because they share the ports of NPUs.
struct SharedLinks {
  std::vector<std::size_t> dimensions;
  Bandwidth rate;
  std::string port;  ///< name in system.network.ports; empty: none

  Settings settings(Bandwidth changed) const {
    Settings all;
    for (const std::size_t d : dimensions)
      all.push_back(fmt::format("system.network.dimensions.{}.bandwidth={}", d, setting_of(changed)));
    if (!port.empty()) all.push_back(fmt::format("system.network.ports.{}={}", port, setting_of(changed)));
    return all;
  }
  std::string name() const {
    return fmt::format("{} {}", dimensions.size() == 1 ? "dimension" : "dimensions", fmt::join(dimensions, " and "));
  }
};

/// Returns the links of a system: dimensions with one port, and neighbours of one rate, have theirs in common.
std::vector<SharedLinks> links_of(const config::Configuration& configuration) {
  std::vector<SharedLinks> all;
  for (std::size_t d = 0; d < configuration.dimensions.size(); ++d) {
    const auto& dimension = configuration.dimensions[d];
    if (dimension.size < 2) continue;
    const auto shares = [&](const SharedLinks& links) {
      const auto& before = configuration.dimensions[links.dimensions.back()];
      return before.port == dimension.port && before.bandwidth == dimension.bandwidth &&
             before.shape->name == dimension.shape->name;
    };
    if (!all.empty() && shares(all.back()))
      all.back().dimensions.push_back(d);
    else
      all.push_back(
          {{d}, dimension.bandwidth, configuration.port_rates.contains(dimension.port) ? dimension.port : ""});
  }
  return all;
}

/// A change that may shorten the step.
struct Candidate {
  std::string text;
  Settings settings;
  double more_work = 1;     ///< factor of the samples of a step
  std::string remark = {};  ///< side effects of the change
};

void add_links(const config::Configuration& configuration, std::vector<Candidate>& all) {
  if (configuration.execution.network.graph) return;
  for (const SharedLinks& links : links_of(configuration)) {
    const Bandwidth twice = Bandwidth::from_bytes_per_ns(2 * links.rate.bytes_per_ns());
    all.push_back({fmt::format("{} in {}", setting_of(twice), links.name()), links.settings(twice)});
  }
}

/// Returns the layers of stages, one fewer in the last and one more in the first one; none if they have too few.
std::optional<std::string> fewer_in_last_stage(const workload::Description& description) {
  const auto& parallel = description.parallel;
  const std::uint32_t stages = parallel[Axis::pp];
  const auto layers = std::visit([](const auto& model) { return model.num_blocks(); }, description.model);
  if (!parallel.pipeline.stage_layers.empty() || parallel.num_chunks() > 1 || stages < 2 || layers < 2 * stages)
    return {};
  std::vector<std::uint64_t> counts(stages);
  const std::uint64_t last = layers / stages - 1, rest = layers - last;
  for (std::uint32_t stage = 0; stage + 1 < stages; ++stage)
    counts[stage] = rest / (stages - 1) + (stage < rest % (stages - 1) ? 1 : 0);
  counts.back() = last;
  return fmt::format("[{}]", fmt::join(counts, ", "));
}

/// Adds other ways to divide a training step that has the same samples.
void add_divisions(const workload::Description& description, std::vector<Candidate>& all) {
  const auto& parallel = description.parallel;
  if (parallel.is_inference()) return;
  const auto add = [&](const std::string& key, const std::string& value) {
    all.push_back({fmt::format("{}: {}", key, value), {fmt::format("workload.parallel.{}={}", key, value)}});
  };
  if (parallel.recompute != workload::Recompute::none) add("recompute", "none");
  if (parallel[Axis::tp] > 1 && !parallel.sequence_parallel) add("sp", "true");
  if (parallel.sharding.zero == 3) add("zero", "1");
  if (parallel[Axis::pp] == 1) return;
  const bool is_plain = parallel.pipeline.schedule == workload::Schedule::one_forward_one_backward;
  if (is_plain && parallel.interleaving == 1) {
    add("interleaving", "2");
    add("schedule", "zb-h1");
  }
  if (const auto layers = fewer_in_last_stage(description)) add("stage-layers", *layers);
  const std::uint32_t enough = 4 * parallel[Axis::pp];
  if (parallel.micro_batches < enough)
    all.push_back({fmt::format("micro-batches: {}", enough),
                   {fmt::format("workload.parallel.micro-batches={}", enough)},
                   static_cast<double>(enough) / parallel.micro_batches,
                   fmt::format("for {:.3g} times the samples", static_cast<double>(enough) / parallel.micro_batches)});
}

std::vector<Candidate> candidates_of(const config::Configuration& configuration) {
  std::vector<Candidate> all;
  add_links(configuration, all);
  if (const auto& generated = configuration.workload.generated) add_divisions(*generated, all);
  if (const std::size_t slow = configuration.perturbation.slow_npus.size(); slow > 0) {
    Settings settings;
    for (std::size_t i = 0; i < slow; ++i) settings.push_back(fmt::format("perturbation.slow-npus.{}.compute=1", i));
    all.push_back({"all NPUs at full speed", std::move(settings)});
  }
  return all;
}

/// Returns about how many nodes one change of a run simulates, by what does not depend on clocks.
double nodes_of(const results::Gathered& all, const config::Configuration& configuration) {
  double most = 0, sum = 0;
  for (const npu::NpuRecord& npu : all.npus.distinct()) {
    const auto nodes = static_cast<double>(npu.nodes_completed);
    most = std::max(most, nodes);
    sum += nodes;
  }
  const auto& generated = configuration.workload.generated;
  const bool folds = generated && !configuration.execution.goes_over_links() &&
                     configuration.execution.noise.amplitude == 0 &&
                     configuration.execution.noise.variations.all().empty();
  const double nodes = folds ? std::min(sum, 2 * most * generated->parallel[Axis::pp]) : sum;
  const double set_up = nodes_of_npu * static_cast<double>(all.npus.size());
  return set_up + nodes * (configuration.execution.goes_over_links() ? nodes_on_links : 1);
}

/// Says of a network on which a step waits that more of it would not help, if that is so.
void add_network_fact(const results::Metrics& metrics, const config::Configuration& configuration, Changes& changes,
                      std::vector<std::string>& facts) {
  constexpr double much = 0.1;
  if (metrics.shares.exposed_communication < much || configuration.execution.network.graph) return;
  Settings all;
  for (const SharedLinks& links : links_of(configuration)) {
    const Settings faster = links.settings(Bandwidth::from_bytes_per_ns(2 * links.rate.bytes_per_ns()));
    all.insert(all.end(), faster.begin(), faster.end());
  }
  const auto step = all.empty() ? std::nullopt : changes.step_with(all);
  if (!step) return;
  const double gain = 1 - step->time.seconds() / metrics.step_time.seconds();
  if (gain < worth_saying)
    facts.push_back(fmt::format("The network does not limit: twice the bandwidth in all dimensions saves {}.",
                                gain < 0.0005 ? "less than 0.1 %" : results::percent(gain)));
}

/// Returns the part of the breakdown that a change shortens most.
std::size_t part_that_shrinks(const results::Metrics& metrics, const Changes::Step& changed, double more_work) {
  const double before = metrics.step_time.seconds(), after = changed.time.seconds() / more_work;
  std::size_t found = 0;
  double most = 0;
  for (std::size_t part = 0; part < metrics.breakdown.size(); ++part)
    if (const double less = metrics.breakdown[part] * before - changed.shares[part] * after; less > most) {
      most = less;
      found = part;
    }
  return found;
}

}  // namespace

std::string Remedy::text() const {
  return fmt::format("with {}: {}{}{} ({:+.1f} %{})", change, readable(step), remark.empty() ? "" : " ", remark,
                     -100 * gain, remark.empty() ? "" : " of the time of a sample");
}

Advice advise(const results::Gathered& all, const config::Inputs& inputs, const config::Configuration& configuration) {
  Advice advice;
  if (!all.metrics) return advice;
  const results::Metrics& metrics = *all.metrics;
  if (auto late = results::hint_of_late_members(metrics, all.npus)) advice.facts.push_back(std::move(*late));
  const auto candidates = candidates_of(configuration);
  const bool is_plain = !inputs.astra_sim && configuration.workload.jobs.empty() &&
                        configuration.perturbation.repetitions == 1 && !configuration.execution.replay_only;
  const double cost = nodes_of(all, configuration) * static_cast<double>(candidates.size() + 1);
  if (!is_plain || cost > most_nodes) {
    for (const std::string& hint : metrics.hints)
      if (advice.facts.size() < most_remedies && std::ranges::find(advice.facts, hint) == advice.facts.end())
        advice.facts.push_back(hint);
    return advice;
  }
  Changes changes(inputs);
  for (const Candidate& candidate : candidates) {
    const auto step = changes.step_with(candidate.settings);
    if (!step) continue;
    const double gain = 1 - step->time.seconds() / candidate.more_work / metrics.step_time.seconds();
    if (gain < worth_saying) continue;
    advice.remedies.push_back(
        {candidate.text, candidate.remark, gain, step->time, part_that_shrinks(metrics, *step, candidate.more_work)});
  }
  std::ranges::stable_sort(advice.remedies, std::greater(), &Remedy::gain);
  if (advice.remedies.size() > most_remedies) advice.remedies.resize(most_remedies);
  add_network_fact(metrics, configuration, changes, advice.facts);
  return advice;
}

std::vector<Sensitivity> find_sensitivities(const config::Inputs& inputs, const config::Configuration& configuration) {
  if (inputs.astra_sim)
    throw Error(ErrorCode::bad_input, {.key = "--sensitivity"}, "found it beside ASTRA-sim's files",
                "a CONFIG.yaml, whose values it changes");
  struct Input {
    std::string name;
    std::function<Settings(double)> settings;  ///< settings of a factor
  };
  std::vector<Input> all;
  if (!configuration.execution.network.graph)
    for (const SharedLinks& links : links_of(configuration)) {
      all.push_back({fmt::format("bandwidth of {}", links.name()), [links](double factor) {
                       return links.settings(Bandwidth::from_bytes_per_ns(factor * links.rate.bytes_per_ns()));
                     }});
      all.push_back({fmt::format("latency of {}", links.name()), [links, &configuration](double factor) {
                       Settings settings;
                       for (const std::size_t d : links.dimensions)
                         settings.push_back(fmt::format("system.network.dimensions.{}.latency={:.9g} ns", d,
                                                        factor * configuration.dimensions[d].latency_ns));
                       return settings;
                     }});
    }
  const auto& compute = configuration.execution.compute;
  const auto add = [&](const std::string& name, const std::string& key, double value, const std::string& unit) {
    if (value > 0)
      all.push_back(
          {name, [=](double factor) { return Settings{fmt::format("{}={:.9g}{}", key, factor * value, unit)}; }});
  };
  if (compute.model->uses_operations) {
    if (configuration.peaks.empty())
      add("peak of compute", "system.compute.peak", compute.peak_flops, " FLOPS");
    else
      add("peak of compute", fmt::format("system.compute.peak.{}", config::name_of(configuration.precision())),
          compute.peak_flops, " FLOPS");
    add("bandwidth of local memory", "system.compute.local-memory.bandwidth", compute.local_memory.bytes_per_ns(),
        " GB/s");
  }
  if (compute.model->estimates_operations)
    add("efficiency of products", "system.compute.efficiency", std::min(compute.efficiency, 1 / (1 + changed_share)),
        "");
  Changes changes(inputs);
  std::vector<Sensitivity> found;
  for (const Input& input : all) {
    const auto less = changes.step_with(input.settings(1 - changed_share));
    const auto more = changes.step_with(input.settings(1 + changed_share));
    if (less && more) found.push_back({input.name, less->time, more->time});
  }
  const auto span = [](const Sensitivity& one) { return std::abs((one.less - one.more).ps()); };
  std::ranges::stable_sort(found, std::greater(), span);
  if (found.size() > most_sensitivities) found.resize(most_sensitivities);
  return found;
}

}  // namespace orrery::study
