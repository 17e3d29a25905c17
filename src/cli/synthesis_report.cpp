#include "synthesis_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/config/preset_files.hpp"
#include "orrery/config/read.hpp"
#include "orrery/synthesis/attack.hpp"
#include "orrery/synthesis/learn.hpp"
#include "orrery/workload/generator.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::cli {
namespace {

using synthesis::Attacker;
using synthesis::Features;

constexpr std::size_t most_known_models = 20;  // models that an attacker knows
constexpr std::uint32_t known_npus = 16;

/// A model that an attacker knows.
struct KnownModel {
  synthesis::Model model;
  std::unordered_set<std::uint64_t> sizes;
};

/// The known models and the features of their traces.
struct KnownModels {
  std::vector<KnownModel> models;
  std::vector<Features> features;
};

/// Returns a preset on 16 NPUs; nothing if it is no transformer, or cannot be divided so.
std::optional<workload::Description> known_description(const std::filesystem::path& preset) {
  try {
    auto description = config::read_workload(
        {}, {fmt::format("workload.model=\"{}\"", preset.string()), "workload.parallel.tp=4", "workload.parallel.dp=2",
             "workload.parallel.pp=2", "workload.parallel.micro-batches=4"});
    if (!std::holds_alternative<workload::Transformer>(description.model)) return {};
    return description;
  } catch (const Error&) {
    return {};
  }
}

KnownModels known_models() {
  KnownModels known;
  std::vector<NpuId> npus;
  for (std::uint32_t npu = 0; npu < known_npus; ++npu) npus.emplace_back(npu);
  for (const auto& preset : config::preset_files("models")) {
    const auto description = known_description(preset);
    if (!description) continue;
    trace::Store store({.num_npus = known_npus}, {});
    const auto traces = workload::assemble(*description, npus, store);
    known.features.push_back(synthesis::features_of(traces));
    known.models.push_back({synthesis::learn(store, traces, {}), {}});
    for_each_trace_size(traces, [&](std::uint64_t size) { known.models.back().sizes.insert(size); });
    if (known.models.size() == most_known_models) break;
  }
  return known;
}

/// Returns the features of what is synthesized of a known model.
Features synthesized_features(const KnownModel& known, const synthesis::Scale& scale,
                              synthesis::Obfuscation obfuscation) {
  obfuscation.avoid = &known.sizes;
  trace::Store store({.num_npus = synthesis::num_npus_of(known.model, scale)}, {});
  return synthesis::features_of(synthesis::emit(known.model, scale, obfuscation, store).traces);
}

/// Returns other layers and sizes for the model with this number: 0.5 to 2 times the layers, 0.4 to 2.5 times the
/// sizes.
synthesis::Scale other_scale(const synthesis::Model& model, std::size_t number) {
  constexpr std::array layers{0.5, 0.75, 1.5, 2.0}, sizes{0.4, 0.6, 1.7, 2.5};
  const double wanted = std::nearbyint(model.layers * layers[number % layers.size()]);
  synthesis::Scale scale;
  scale.layers = static_cast<std::uint32_t>(std::max(4.0, wanted));
  scale.sizes = sizes[number / 4 % sizes.size()];
  return scale;
}

/// Returns how often an attacker is right: at the same scale, with other layers and sizes, and there by ratios only.
std::array<std::size_t, 3> count_hits(const KnownModels& known, const synthesis::Obfuscation& obfuscation) {
  std::array<std::size_t, 3> hits{};
  for (std::size_t i = 0; i < known.models.size(); ++i) {
    const auto is_named = [&](const Features& seen, Attacker attacker) {
      return synthesis::nearest(known.features, seen, attacker) == i ? 1U : 0U;
    };
    hits[0] += is_named(synthesized_features(known.models[i], {}, obfuscation), Attacker::all);
    const Features other = synthesized_features(known.models[i], other_scale(known.models[i].model, i), obfuscation);
    hits[1] += is_named(other, Attacker::all);
    hits[2] += is_named(other, Attacker::ratios);
  }
  return hits;
}

void print_measure(std::string_view name, double value, double aim, double factor, std::string_view unit) {
  const std::string text = fmt::format("{:.3f}{}{}", factor * value, unit, value > aim + 1e-9 ? " *" : "");
  fmt::print("  {:<8} {:<16} aim {}{}\n", name, text, factor * aim, unit);
}

void print_fidelity(const SynthesisJob& job) {
  if (!job.input) return fmt::print("\nThe model knows no input with which these traces could be compared.\n");
  // Of another scale there is no input: what is compared is not written.
  trace::Store store({.num_npus = static_cast<std::uint32_t>(job.input->traces.size())}, {});
  synthesis::Emission same;
  try {
    if (!job.is_of_input_scale) same = synthesis::emit(job.model, {}, job.obfuscation, store);
  } catch (const Error& error) {  // the traces that were asked for are written
    return fmt::print("\nTraces at the scale of the input cannot be made: {}\n", error.text());
  }
  const synthesis::TraceSet made = job.is_of_input_scale ? job.written : synthesis::TraceSet{store, same.traces};
  const synthesis::Fidelity found = synthesis::fidelity_of(made, *job.input), aims = synthesis::fidelity_aims;
  fmt::print(
      "\nHow far traces at the scale of the input are from it (the worst of up to 8 ranks; * misses the aim):\n");
  print_measure("counts", found.counts, aims.counts, 1, "");
  print_measure("sizes", found.sizes, aims.sizes, 1, " decades");
  print_measure("depth", found.depth, aims.depth, 100, " %");
  print_measure("degrees", found.degrees, aims.degrees, 1, "");
}

/// Says whether an attacker takes the traces that were written for those of the input, if he knows them too.
void print_own_attack(const SynthesisJob& job, std::vector<Features> known) {
  known.push_back(synthesis::features_of(job.input->traces));
  const Features seen = synthesis::features_of(job.written.traces);
  const auto text = [&](Attacker attacker) {
    return synthesis::nearest(known, seen, attacker) + 1 == known.size() ? "yes" : "no";
  };
  fmt::print("Does an attacker who knows the input beside them recognise it in these traces? {}; by ratios only: {}\n",
             text(Attacker::all), text(Attacker::ratios));
}

void print_attack(const SynthesisJob& job) {
  const KnownModels known = known_models();
  if (known.models.size() < 2)
    return fmt::print("\nHow often an attacker names a model is not measured: there are no presets of models.\n");
  const auto hits = count_hits(known, job.obfuscation);
  const auto number = static_cast<double>(known.models.size());
  fmt::print(
      "\nHow often an attacker names the right one of {} known models (by chance {:.0f} %), with --delta {} and "
      "--spread {}:\n",
      known.models.size(), 100 / number, job.obfuscation.delta, job.obfuscation.spread);
  constexpr std::array<std::string_view, 3> names{"the same layers and sizes", "other layers and sizes",
                                                  "the same, by ratios of sizes only"};
  for (std::size_t i = 0; i < hits.size(); ++i)
    fmt::print("  {:<34} {:>3.0f} %\n", names[i], 100 * static_cast<double>(hits[i]) / number);
  if (job.input) print_own_attack(job, known.features);
}

}  // namespace

void print_synthesis_report(const SynthesisJob& job) {
  print_fidelity(job);
  print_attack(job);
}

}  // namespace orrery::cli
