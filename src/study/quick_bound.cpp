#include "quick_bound.hpp"

#include <algorithm>
#include <utility>

#include "orrery/study/bounds.hpp"
#include "orrery/workload/outline.hpp"

namespace orrery::study {

using workload::Axis;
using workload::LayerRun;
using workload::LayerRuns;

namespace {

constexpr std::size_t most_known = 10'000;

}  // namespace

struct QuickBounds::Known {
  Known(const workload::Description& description, const compute::ComputeModel* estimates)
      : layers(description, estimates) {}

  struct Times {
    LayerRuns runs;
    bool is_divided = false;
    PassTimes times;
  };

  workload::ModelOutline layers;
  std::vector<Times> times;  ///< times of few layers
};

QuickBounds::QuickBounds() = default;
QuickBounds::~QuickBounds() = default;

QuickBounds::Known& QuickBounds::known_of(const config::Configuration& configuration) {
  const auto& description = *configuration.workload.generated;
  const std::size_t hash = workload::ModelOutline::hash(description);
  const auto [first, last] = known_.equal_range(hash);
  for (auto known = first; known != last; ++known)
    if (known->second->layers.is_of(description)) return *known->second;
  if (known_.size() == most_known) known_.clear();
  return *known_.emplace(hash, std::make_unique<Known>(description, configuration.workload.estimates.get()))->second;
}

Bytes QuickBounds::least_peak_memory(const config::Configuration& configuration) {
  return Bytes(known_of(configuration).layers.least_peak_memory(configuration.workload.generated->parallel));
}

QuickBounds::PassTimes QuickBounds::times_of_nodes(const workload::StageOutline& passes,
                                                   const config::Configuration& configuration, run::System& system) {
  const auto least = least_times(passes, configuration, system);
  PassTimes times;
  for (const auto& pass : passes.passes) {
    using Kind = workload::OutlinePass::Kind;
    Time& time = pass.kind == Kind::forward   ? times.forward
                 : pass.kind == Kind::weights ? times.weights
                                              : times.backward;
    for (const NodeId node : pass.chain) {
      time += least[node.index()];
      if (passes.structure.graph.nodes[node.index()].kind == trace::NodeKind::compute)
        times.compute += least[node.index()];
    }
  }
  return times;
}

// A layer that follows one that is alike adds the same nodes as the next such layer: what it is merged with is the end
// of the one before it. So a run of n layers takes what two of them take, and n - 2 times what the third one adds.
QuickBounds::PassTimes QuickBounds::times_through(Known& known, const LayerRuns& runs, bool is_divided,
                                                  const config::Configuration& configuration, run::System& system) {
  LayerRuns few = runs;
  for (LayerRun& run : few) run.count = std::min(run.count, 2U);
  const auto of_few = [&](const LayerRuns& layers) {
    for (const auto& times : known.times)
      if (times.is_divided == is_divided && times.runs == layers) return times.times;
    const PassTimes times = times_of_nodes(known.layers.passes_through(layers, is_divided), configuration, system);
    known.times.push_back({layers, is_divided, times});
    return times;
  };
  PassTimes times = of_few(few);
  for (const LayerRun& run : runs) {
    if (run.count <= 2) continue;
    const PassTimes three = of_few({{run.kind, 3}}), two = of_few({{run.kind, 2}});
    const std::int64_t more = run.count - 2;
    times.forward += (three.forward - two.forward) * more;
    times.backward += (three.backward - two.backward) * more;
    times.weights += (three.weights - two.weights) * more;
    times.compute += (three.compute - two.compute) * more;
  }
  return times;
}

// The terms 1 and 2 of docs/exploration.md, *Bounds*, with messages of no time: the first pass of a stage is that of
// its first virtual stage, and with GPipe and 1F1B the last one is the backward pass of the same.
StepBounds QuickBounds::bounds_of_step(const config::Configuration& configuration, run::System& system) {
  const auto& parallel = configuration.workload.generated->parallel;
  Known& known = known_of(configuration);
  const bool is_divided = workload::divides_backward_passes(parallel);
  std::vector<PassTimes> times;  // [virtual stages]
  const auto stages = known.layers.virtual_stages(parallel);
  for (std::size_t i = 0; i < stages.size(); ++i)
    times.push_back(i > 0 && stages[i] == stages[i - 1]
                        ? times.back()
                        : times_through(known, stages[i], is_divided, configuration, system));
  Time before, after, bound;  // of the forward and the backward passes of the virtual stages before
  for (std::uint32_t p = 0; p < parallel[Axis::pp]; ++p) {
    Time of_batch;
    for (std::uint32_t chunk = 0; chunk < parallel.num_chunks(); ++chunk)
      of_batch += times[parallel.virtual_stage(p, chunk)].all();
    bound = std::max(bound, before + of_batch * parallel.micro_batches + (is_divided ? Time::zero() : after));
    before += times[p].forward;
    after += times[p].backward;
  }
  Time through;
  double compute = 0;
  for (const PassTimes& stage : times) {
    through += stage.forward + stage.backward;
    compute += stage.compute.seconds() * parallel.micro_batches / parallel[Axis::pp];
  }
  bound = std::max(bound, through);
  return {bound == Time::max() ? Time::zero() : bound, compute};
}

}  // namespace orrery::study
