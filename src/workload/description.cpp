#include "orrery/workload/description.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dlrm.hpp"
#include "layer_list.hpp"
#include "orrery/base/error.hpp"
#include "refuse.hpp"
#include "transformer.hpp"

namespace orrery::workload {
namespace {

/// Layers that are dealt to stages.
std::uint64_t num_blocks(const Model& model) {
  if (const auto* transformer = std::get_if<Transformer>(&model)) return transformer->layers;
  if (const auto* list = std::get_if<LayerList>(&model)) return list->layers.size();
  return 1;
}

void require_collective_for_path(const Offload& offload, std::uint32_t zero) {
  if (!offload.on_path || offload.gradients || (offload.parameters && zero == 3)) return;
  throw Error(ErrorCode::bad_input, {.key = "workload.parallel.offload-collectives"},
              offload.any() ? "found path, but what is offloaded is moved without a collective"
                            : "found path, but nothing is offloaded",
              "network, or workload.parallel.offload with gradients, or with parameters and zero: 3");
}

}  // namespace

void refuse(std::string_view key, std::uint64_t found, std::string_view expected) {
  throw Error(ErrorCode::bad_input, {.key = std::string(key)}, fmt::format("found {}", found), expected);
}

void require_positive(std::string_view key, std::uint64_t value) {
  if (value == 0) refuse(key, value, "1 or more");
}

void require_multiple(std::string_view key, std::uint64_t value, std::string_view by, std::uint64_t divisor) {
  if (value % divisor != 0) refuse(key, value, fmt::format("a multiple of {}, which is {}", by, divisor));
}

// The largest sums are of bytes: up to 24 for each multiply-add, several operators in a node.
void require_countable(std::string_view key, std::string_view what, double count) {
  constexpr double limit = 0x1p55;
  if (!(count < limit))
    throw Error(ErrorCode::bad_input, {.key = std::string(key)}, fmt::format("{:.4g} {}", count, what),
                fmt::format("less than {:.4g}", limit));
}

std::uint32_t Parallel::num_npus() const {
  unsigned __int128 product = 1;
  for (const std::uint32_t size : sizes) {
    product *= size;
    if (product > std::numeric_limits<std::uint32_t>::max())
      throw Error(ErrorCode::bad_input, {.key = "workload.parallel"},
                  "tp * cp * ep * dp * pp is more than 2^32 - 1 NPUs");
  }
  return static_cast<std::uint32_t>(product);
}

void Description::validate() const {
  for (std::size_t i = 0; i < num_axes; ++i)
    require_positive(fmt::format("workload.parallel.{}", axis_names[i]), parallel.sizes[i]);
  parallel.num_npus();
  auto axes = parallel.placement;
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end())
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.placement"}, "an axis stands here twice",
                "tp, cp, ep, dp and pp once each");
  require_positive("workload.parallel.interleaving", parallel.interleaving);
  require_positive("workload.parallel.micro-batch", parallel.micro_batch);
  require_positive("workload.parallel.micro-batches", parallel.micro_batches);
  if (parallel.zero > 3) refuse("workload.parallel.zero", parallel.zero, "0 to 3");
  require_collective_for_path(parallel.offload, parallel.zero);
  if (parallel.gradients == Precision::fp8)
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.gradients"}, "found 'fp8'", "bf16 or fp32");
  std::visit([this](const auto& kind) { workload::validate(kind, parallel); }, model);
  if (parallel.num_virtual_stages() > num_blocks(model))
    throw Error(ErrorCode::bad_input, {.key = "workload.parallel.pp"},
                fmt::format("{} layers cannot be shared by {} pipeline stages", num_blocks(model),
                            parallel.num_virtual_stages()),
                "a layer or more for each of pp * interleaving stages");
  if (parallel.interleaving > 1) {
    if (parallel[Axis::pp] == 1)
      refuse("workload.parallel.interleaving", parallel.interleaving, "1 without a pipeline");
    if (parallel.schedule == Schedule::gpipe)
      refuse("workload.parallel.interleaving", parallel.interleaving, "1 with the GPipe schedule");
    require_multiple("workload.parallel.micro-batches", parallel.micro_batches, "pp (the schedule is interleaved)",
                     parallel[Axis::pp]);
  }
}

std::vector<Layer> layers_of(const Description& description) {
  return std::visit([&](const auto& model) { return layers_of(model, description.parallel); }, description.model);
}

ParameterCount parameters_of(const Model& model) {
  return std::visit([](const auto& kind) { return parameters_of(kind); }, model);
}

}  // namespace orrery::workload
