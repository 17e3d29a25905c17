#include "orrery/workload/model.hpp"

#include <array>
#include <utility>

#include "layer.hpp"
#include "orrery/base/error.hpp"
#include "step.hpp"

namespace orrery::workload {
namespace {

template <class Families>
struct Registry;

/// The tables that follow from the alternatives of Model.
template <class... Families>
struct Registry<std::variant<Families...>> {
  static constexpr std::array names = {ModelFamily{Families::family, Families::help}...};
  static constexpr std::array<Model (*)(), sizeof...(Families)> makers = {+[] { return Model(Families()); }...};
};

/// Lets the layers of each virtual stage after the first Parallel::recompute_layers keep what they would compute again.
void keep_other_activations(std::vector<Layer>& layers, const Parallel& parallel) {
  for (const auto stage : assign_layers(layers, parallel)) {
    std::uint32_t recomputed = 0;
    for (const Layer& assigned : stage) {
      if (assigned.recomputation.empty() || ++recomputed <= *parallel.pipeline.recompute_layers) continue;
      Layer& layer = layers[static_cast<std::size_t>(&assigned - layers.data())];
      layer.activations += std::exchange(layer.recomputed, 0);
      layer.recomputation.clear();
    }
  }
}

}  // namespace

std::span<const ModelFamily> model_families() { return Registry<Model>::names; }

Model default_model(std::size_t number) {
  ensure(number < std::variant_size_v<Model>, "a family of models that is not there");
  return Registry<Model>::makers[number]();
}

std::vector<Layer> make_layers(const Description& description, std::optional<std::uint32_t> part) {
  const Parallel& parallel = description.parallel;
  auto layers = std::visit(
      [&](const auto& model) {
        if constexpr (requires { model.make_layers(parallel, part); })
          return model.make_layers(parallel, part);
        else
          return model.make_layers(parallel);
      },
      description.model);
  if (parallel.pipeline.recompute_layers) keep_other_activations(layers, parallel);
  return layers;
}

std::vector<std::uint32_t> kinds_of_npus(const Description& description) {
  return std::visit(
      [&](const auto& model) -> std::vector<std::uint32_t> {
        if constexpr (requires { model.kinds_of_npus(description.parallel); })
          return model.kinds_of_npus(description.parallel);
        return {};
      },
      description.model);
}

ParameterCount count_parameters(const Model& model) {
  return std::visit([](const auto& family) { return family.count_parameters(); }, model);
}

std::uint64_t tokens_per_sample(const Model& model) {
  return std::visit(
      [](const auto& family) -> std::uint64_t {
        if constexpr (requires { family.tokens_per_sample(); }) return family.tokens_per_sample();
        return 0;
      },
      model);
}

Time start_of(const Model& model, NpuId npu, std::uint32_t num_npus) {
  return std::visit(
      [&](const auto& family) {
        if constexpr (requires { family.start_of(npu, num_npus); }) return family.start_of(npu, num_npus);
        return Time::zero();
      },
      model);
}

}  // namespace orrery::workload
