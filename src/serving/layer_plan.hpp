#pragma once

#include <cstdint>
#include <vector>

#include "expert_exchange.hpp"
#include "orrery/serving/pipeline.hpp"
#include "orrery/serving/step_options.hpp"
#include "orrery/serving/step_plan.hpp"
#include "orrery/workload/transformer.hpp"
#include "us_to_time.hpp"

namespace orrery::serving {

/// The parts of a step, in us without collectives, and the rows and requests that these are of.
struct LayerTimes {
  double before = 0, layer = 0, behind = 0;
  double experts = 0;              ///< experts of a layer that data-parallel ranks share; 0: they share none
  double rows = 0, sequences = 0;  ///< largest numbers of a rank
  double all_rows = 0;             ///< rows of all data-parallel ranks
};

/// Returns what a step does on each stage: two all-reduces in a layer and one behind the embedding, an all-gather of
/// the output layer, and the exchange of shared experts.
inline std::vector<StagePlan> plan_of_layers(const LayerTimes& times, const workload::Transformer& model,
                                             const StepOptions& options, const InstanceParallel& parallel) {
  using trace::CollectiveKind;
  constexpr double width = 2;  // bytes of an activation
  const auto hidden = static_cast<double>(model.hidden);
  const auto whole = [](double bytes) { return Bytes(static_cast<std::uint64_t>(bytes)); };
  const bool is_divided = parallel.tp > 1;
  const StepPhase reduced{
      .communicates = is_divided, .kind = CollectiveKind::all_reduce, .bytes = whole(times.rows * hidden * width)};
  const auto computed = [](StepPhase phase, double us) {
    phase.compute = us_to_time(us);
    return phase;
  };
  PlanSection layer{.phases = {computed(reduced, times.layer / 2), computed(reduced, times.layer / 2)}};
  if (times.experts > 0) {
    const ExpertOptions& of = options.experts;
    const double ranks = parallel.dp, rows = times.all_rows / ranks;
    StepPhase there{.communicates = true,
                    .among_ranks = true,
                    .kind = CollectiveKind::all_gather,
                    .bytes = whole(rows * hidden * width)};
    StepPhase back{.communicates = true,
                   .among_ranks = true,
                   .kind = CollectiveKind::reduce_scatter,
                   .bytes = whole(times.all_rows * hidden * width)};
    if (of.exchange != Exchange::gather) {
      const double copies = copies_of_rows(model, of, ranks) * rows * ranks / (ranks - 1);
      there.kind = back.kind = CollectiveKind::all_to_all;
      there.bytes = whole(copies * hidden * of.dispatch_bytes);
      back.bytes = whole(copies * hidden * of.combine_bytes);
    }
    layer.phases.push_back(there);
    layer.phases.push_back(computed(back, times.experts));
  }
  std::vector<StagePlan> plans(parallel.pp);
  plans.front().push_back({.phases = {computed(reduced, times.before)}});
  for (std::uint32_t s = 0; s < parallel.pp; ++s) {
    layer.count = layers_of_stage(model.layers, parallel.pp, s);
    if (layer.count > 0) plans[s].push_back(layer);
  }
  const StepPhase gathered{
      .communicates = is_divided,
      .kind = CollectiveKind::all_gather,
      .bytes = whole(times.sequences * static_cast<double>(model.embedding.vocabulary) * width / parallel.tp)};
  plans.back().push_back({.phases = {computed(gathered, times.behind)}});
  return plans;
}

}  // namespace orrery::serving
