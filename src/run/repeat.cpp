#include "repeat.hpp"

#include <algorithm>
#include <span>

#include "orrery/run/checkpoints.hpp"

namespace orrery::run {
namespace {

/// Says whether NPUs that are alike with one seed may differ with another one.
bool folds_by_draws(const config::Configuration& configuration) {
  const Variations& variations = configuration.execution.noise.variations;
  return configuration.run.fold &&
         (variations.has(DrawnPer::machine) || variations.has(DrawnPer::npu) || variations.has(DrawnPer::step));
}

}  // namespace

results::Repetition repetition_of(const Simulation& simulation, const config::Configuration& configuration,
                                  parallel::Communicator& world) {
  std::int64_t end = 0;
  for (const auto& npu : simulation.model().npus().records()) end = std::max(end, npu.finish.ps());
  world.maximum(std::span(&end, 1));
  return {configuration.execution.noise.seed, Time::from_ps(end)};
}

std::optional<Time> repeat(config::Configuration& configuration, std::unique_ptr<Preparation>& preparation,
                           const std::function<bool()>& stop_requested, parallel::Communicator& world,
                           Checkpoints* checkpoints, std::vector<results::Repetition>& all) {
  config::RunOptions options = configuration.run;
  options.record_load = false;  // the results have that of the first run
  while (all.size() < configuration.perturbation.repetitions) {
    configuration.draw_with(configuration.execution.noise.seed + 1);
    if (const auto* const known = checkpoints ? checkpoints->complete(all.size()) : nullptr) {
      all.push_back(*known);
      continue;
    }
    const bool is_new = folds_by_draws(configuration);
    if (is_new) {
      preparation.reset();
      preparation = prepare(configuration, world);
    }
    if (checkpoints) checkpoints->begin_repetition(all, *preparation, is_new);
    const auto simulation = simulate(*preparation, options, stop_requested, world, checkpoints);
    if (simulation->stopped_at()) return simulation->stopped_at();
    all.push_back(repetition_of(*simulation, configuration, world));
  }
  return {};
}

}  // namespace orrery::run
