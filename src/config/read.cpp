#include "orrery/config/read.hpp"

#include <fmt/format.h>

#include "formats.hpp"
#include "orrery/base/text.hpp"
#include "orrery/partition/strategy.hpp"
#include "references.hpp"
#include "section.hpp"
#include "suggestion.hpp"

namespace orrery::config {
namespace {

void apply(const Flags& flags, Configuration& result) {
  RunOptions& run = result.run;
  run.output = flags.output.value_or(run.output);
  run.force = flags.force.value_or(run.force);
  run.fold = flags.fold.value_or(run.fold);
  result.executor.timeline = flags.timeline.value_or(result.executor.timeline);
  result.executor.record_iterations = flags.record_iterations.value_or(result.executor.record_iterations);
  result.executor.network.model = flags.network.value_or(result.executor.network.model);
  run.memory = flags.memory.value_or(run.memory);
  result.executor.local_memory_size = flags.local_memory_size.value_or(result.executor.local_memory_size);
  run.progress = flags.progress.value_or(run.progress);
  run.progress_interval_s = flags.progress_interval_s.value_or(run.progress_interval_s);
  run.max_walltime_s = flags.max_walltime_s.value_or(run.max_walltime_s);
  result.executor.iterations = flags.iterations.value_or(result.executor.iterations);
  result.executor.compute_noise = flags.compute_noise.value_or(result.executor.compute_noise);
  result.executor.noise_seed = flags.noise_seed.value_or(result.executor.noise_seed);
  run.quiet = flags.quiet.value_or(run.quiet);
  run.print_npus = flags.print_npus.value_or(run.print_npus);
  result.workload.dependencies = flags.dependencies.value_or(result.workload.dependencies);
  result.workload.streams = flags.streams.value_or(result.workload.streams);
}

using InputTexts = std::vector<std::pair<std::string, std::string>>;

/// A text with all that it refers to and the settings of --set; every text goes to `inputs`.
Value read_values(std::string text, const Origin& origin, const std::vector<std::string>& overrides, InputTexts& inputs,
                  Faults& faults) {
  Value root = parse_yaml(text, std::make_shared<const Origin>(origin), faults);
  inputs.emplace_back("configuration.yaml", std::move(text));
  follow_references(root, inputs, faults);
  for (const auto& setting : overrides) faults.attempt([&] { apply_override(root, setting, faults); });
  follow_references(root, inputs, faults);
  return root;
}

Configuration read_text_as_own(std::string text, const Origin& origin, const std::vector<std::string>& overrides,
                               bool system_only, Faults& faults) {
  InputTexts inputs;
  const Value root = read_values(std::move(text), origin, overrides, inputs, faults);
  Configuration result = read_own(root, system_only, faults);
  result.inputs.insert(result.inputs.begin(), std::make_move_iterator(inputs.begin()),
                       std::make_move_iterator(inputs.end()));
  return result;
}

Configuration read_file(const Inputs& inputs, Faults& faults) {
  const std::filesystem::path& path = inputs.file;
  return read_text_as_own(read_text(path), {path.string(), path.parent_path()}, inputs.overrides, inputs.system_only,
                          faults);
}

/// What `orrery generate` writes where no file says so: a step of a transformer on 64 NPUs.
constexpr std::string_view default_workload =
    "workload:\n"
    "  model: {layers: 32, hidden: 4096, heads: 32, sequence: 2048}\n"
    "  parallel: {tp: 4, pp: 4, dp: 4, micro-batches: 8, placement: [tp, cp, ep, pp, dp]}\n";

/// The partition file is a text input too, whoever named it.
void settle_partition(const Inputs& inputs, Configuration& result, Faults& faults) {
  auto& partition = result.run.partition;
  faults.attempt([&] {
    auto& named_by = result.run.partition_named_by;
    if (inputs.flags.partition) {
      named_by = {.key = inputs.flags.partition_option};
      partition = partition::PartitionOptions(*inputs.flags.partition, named_by);
    }
    if (!inputs.system_only && result.run.fold && !partition.is_default())
      throw Error(ErrorCode::bad_input, named_by,
                  fmt::format("found '{}' in a folded run, which has ranks host classes of NPUs that are alike",
                              partition.text()),
                  "block, or nothing", "Leave it out, or leave out --fold (run.fold).");
    if (!partition.is_rank_map() || (inputs.system_only && !inputs.flags.partition)) return;
    const std::filesystem::path file = partition.parameter();
    if (std::error_code failure; !std::filesystem::exists(file, failure)) {
      std::vector<std::string_view> strategies;
      for (const auto& strategy : partition::named_strategies()) strategies.push_back(strategy.example);
      throw Error(ErrorCode::bad_input, named_by, fmt::format("{}: no such file", file.string()),
                  "a strategy or a rank map", suggestion(file.filename().string(), strategies));
    }
    result.inputs.emplace_back("partition.txt", read_text(file, named_by.file.empty() ? Place{} : named_by));
  });
}

std::optional<Configuration> resolve(const Inputs& inputs, Faults& faults) {
  std::optional<Configuration> result;
  faults.attempt([&] {
    result =
        inputs.astra_sim ? read_astra_sim(*inputs.astra_sim, inputs.system_only, faults) : read_file(inputs, faults);
    apply(inputs.flags, *result);
    const auto& network = result->executor.network;
    if (network.model == network::Model::congestion_unaware && network.switching == network::Switching::cut_through)
      result->warnings.emplace_back(
          "system.network.switching has no effect in the congestion-unaware network: a message pays the bandwidth once "
          "in each dimension, as with cut-through");
    if (network.model == network::Model::congestion_aware && result->collectives.chunks.overlap_latency)
      result->warnings.emplace_back(
          "system.collectives.overlap-latency has no effect in the congestion-aware network: a chunk holds its links "
          "for its bytes only, and its place among the active chunks until it is through");
    settle_partition(inputs, *result, faults);
    // Defaults stand for faulty values, so that a look at the whole would tell faults that are none.
    if (faults.empty()) result->validate(faults);
  });
  return result;
}

/// What a faulty configuration has that suffices to read the traces: nothing unless it says how many NPUs there are and
/// where their traces are.
std::optional<Configuration> enough_for_traces(const Configuration& faulty) {
  Configuration result;
  result.follow(faulty.rule_set);
  result.dimensions = faulty.dimensions;
  result.workload = faulty.workload;
  result.executor.replay_only = faulty.executor.replay_only;
  result.inputs = faulty.inputs;
  result.warnings = faulty.warnings;
  Faults faults;
  faults.attempt([&] { result.validate(faults); });
  return faults.empty() && (result.workload.generated || !result.workload.traces.empty()) ? std::optional(result)
                                                                                          : std::nullopt;
}

}  // namespace

Findings examine(const Inputs& inputs) {
  Findings findings;
  findings.configuration = resolve(inputs, findings.faults);
  if (findings.configuration && !findings.faults.empty())
    findings.configuration = enough_for_traces(*findings.configuration);
  return findings;
}

Configuration read(const Inputs& inputs) {
  Findings findings = examine(inputs);
  findings.faults.raise();
  return std::move(*findings.configuration);
}

Configuration parse(std::string_view text, const std::string& name, const std::filesystem::path& folder,
                    bool system_only) {
  Faults faults;
  Configuration result = read_text_as_own(std::string(text), {name, folder}, {}, system_only, faults);
  if (faults.empty()) result.validate(faults);
  faults.raise();
  return result;
}

workload::Description read_workload(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  Faults faults;
  InputTexts unused;
  workload::Description result;
  faults.attempt([&] {
    const Origin origin = file.empty() ? Origin{"orrery generate", {}} : Origin{file.string(), file.parent_path()};
    const Value root =
        read_values(file.empty() ? std::string(default_workload) : read_text(file), origin, overrides, unused, faults);
    Section top(&root, "", root, faults);
    Section workload = top.section("workload");
    for (const char* key : {"traces", "groups", "dependencies", "streams", "replay-only", "iterations"})
      workload.find(key);
    result = read_description(workload);
    workload.refuse_unknown();
    if (faults.empty()) result.validate();
  });
  faults.raise();
  return result;
}

}  // namespace orrery::config
