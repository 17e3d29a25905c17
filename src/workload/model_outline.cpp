#include "orrery/workload/model_outline.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "estimates.hpp"
#include "kept_memory.hpp"
#include "layer.hpp"
#include "operators.hpp"
#include "orrery/base/mix.hpp"
#include "pass_chain.hpp"
#include "placement.hpp"
#include "schedule.hpp"
#include "step.hpp"

namespace orrery::workload {
namespace {

/// Returns a step without what its layers do not depend on. Groups of tp, cp and ep are those of NPU 0, which do not
/// depend on the size of axes that come after them. Whether the first and the last layer are on different NPUs counts.
Parallel without_rest(const Parallel& parallel) {
  Parallel same = parallel;
  const auto place = [&](Axis axis) {
    return std::ranges::find(parallel.placement, axis) - parallel.placement.begin();
  };
  const auto innermost = std::max({place(Axis::tp), place(Axis::cp), place(Axis::ep)});
  if (place(Axis::dp) > innermost) same[Axis::dp] = 1;
  same.sharding = {};
  if (is_below_bf16(parallel.precision) && !casts_weights_once(parallel)) same.sharding.zero = 3;
  same.micro_batches = 1;
  same.between_steps = {};
  // Which layers are computed again depends on the virtual stages.
  if (place(Axis::pp) < innermost || parallel.pipeline.recompute_layers) return same;
  same[Axis::pp] = has_ends_apart(parallel) ? 2 : 1;
  same.interleaving = 1;
  same.pipeline = {};
  same.pipeline.recomputed_modules = parallel.pipeline.recomputed_modules;
  return same;
}

}  // namespace

struct ModelOutline::Layers {
  Description of;                       ///< without what the layers do not depend on
  std::vector<Layer> all;               ///< layers of the model, in order
  std::vector<const Layer*> kinds;      ///< one of each kind
  std::vector<std::uint32_t> kind_of;   ///< [all]
  std::vector<std::size_t> end_of_run;  ///< [all] the next layer of another kind
};

ModelOutline::ModelOutline(const Description& description, const compute::ComputeModel* estimates) {
  description.validate();
  auto made = std::make_unique<Layers>();
  made->of = {description.model, without_rest(description.parallel)};
  made->all = make_layers(description, 0);
  if (estimates != nullptr) estimate(made->all, *estimates);
  for (const Layer& layer : made->all) {
    const auto known = std::ranges::find_if(made->kinds, [&](const Layer* kind) { return are_alike(*kind, layer); });
    made->kind_of.push_back(static_cast<std::uint32_t>(known - made->kinds.begin()));
    if (known == made->kinds.end()) made->kinds.push_back(&layer);
  }
  made->end_of_run.resize(made->all.size());
  for (std::size_t i = made->all.size(); i-- > 0;) {
    const bool goes_on = i + 1 < made->all.size() && made->kind_of[i + 1] == made->kind_of[i];
    made->end_of_run[i] = goes_on ? made->end_of_run[i + 1] : i + 1;
  }
  layers_ = std::move(made);
}

ModelOutline::~ModelOutline() = default;

bool ModelOutline::is_of(const Description& description) const {
  return layers_->of.parallel == without_rest(description.parallel) && layers_->of.model == description.model;
}

std::size_t ModelOutline::hash(const Description& description) {
  const Parallel& parallel = description.parallel;
  std::uint64_t seed = description.model.index();
  for (const std::uint64_t part :
       {std::uint64_t{parallel[Axis::tp]}, std::uint64_t{parallel[Axis::cp]}, std::uint64_t{parallel[Axis::ep]},
        parallel.micro_batch, static_cast<std::uint64_t>(parallel.recompute),
        static_cast<std::uint64_t>(parallel.sequence_parallel)})
    seed = mix(seed, part);
  return static_cast<std::size_t>(seed);
}

std::vector<LayerRuns> ModelOutline::virtual_stages(const Parallel& parallel) const {
  std::vector<LayerRuns> stages;
  for (const auto assigned : assign_layers(layers_->all, parallel)) {
    LayerRuns& runs = stages.emplace_back();
    std::size_t at = static_cast<std::size_t>(assigned.data() - layers_->all.data());
    const std::size_t end = at + assigned.size();
    while (at < end) {
      const std::size_t next = std::min(end, layers_->end_of_run[at]);
      runs.push_back({layers_->kind_of[at], static_cast<std::uint32_t>(next - at)});
      at = next;
    }
  }
  return stages;
}

StageOutline ModelOutline::passes_through(std::span<const LayerRun> runs, bool is_divided) const {
  using Kind = OutlinePass::Kind;
  const Parallel& parallel = layers_->of.parallel;
  trace::Builder builder;
  PassChain chain(parallel.detail, builder);
  StageOutline made;
  const auto add_pass = [&](Kind kind, const auto& add_layer, bool is_backward) {
    made.passes.push_back({.kind = kind});
    chain.note(&made.passes.back().chain);
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const LayerRun& run = runs[is_backward ? runs.size() - 1 - i : i];
      for (std::uint32_t k = 0; k < run.count; ++k) add_layer(*layers_->kinds[run.kind]);
    }
    chain.finish_compute_node();
  };
  made.passes.reserve(3);  // the chain of a pass is filled while the pass stays where it is
  add_pass(
      Kind::forward, [&](const Layer& layer) { chain.add(layer.forward, ""); }, false);
  const auto add_backward = [&](const Layer& layer) {
    chain.add(layer.recomputation, "");
    chain.add(is_divided ? inputs_part(layer.backward) : layer.backward, "");
  };
  add_pass(Kind::backward, add_backward, true);
  if (is_divided)
    add_pass(
        Kind::weights, [&](const Layer& layer) { chain.add(weights_part(layer.backward), ""); }, true);
  made.end_of_passes = builder.num_nodes();
  made.structure = builder.finish();
  const Placement placement(parallel);
  for (const std::uint32_t number : made.structure.groups)
    made.groups.push_back({OutlineGroup::Role::passes, placement.members(static_cast<GroupKind>(number), NpuId(0))});
  return made;
}

std::uint64_t ModelOutline::least_peak_memory(const Parallel& parallel) const {
  return most_local_memory(parallel, assign_layers(layers_->all, parallel));
}

bool divides_backward_passes(const Parallel& parallel) {
  return parallel.pipeline.delayed_weight_gradients || parallel.pipeline.schedule == Schedule::zb_h1 ||
         parallel.pipeline.schedule == Schedule::zb_v;
}

}  // namespace orrery::workload
