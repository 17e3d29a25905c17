#include "orrery/workload/outline.hpp"

#include <algorithm>
#include <variant>

#include "estimates.hpp"
#include "layer.hpp"
#include "placement.hpp"
#include "schedule.hpp"
#include "step.hpp"

namespace orrery::workload {
namespace {

OutlineGroup::Role role_of(GroupKind kind) {
  using Role = OutlineGroup::Role;
  switch (kind) {
    case GroupKind::tensor:
    case GroupKind::context:
    case GroupKind::expert:
      return Role::passes;
    case GroupKind::data:
    case GroupKind::expert_data:
      return Role::copies;
    case GroupKind::data_sums:
    case GroupKind::expert_data_sums:
      return Role::sums;
    default:
      return Role::other;
  }
}

}  // namespace

bool has_outline(const Description& description) {
  const Parallel& parallel = description.parallel;
  return std::holds_alternative<Transformer>(description.model) && !parallel.is_inference() &&
         !parallel.is_mirrored() && parallel.experts.imbalance == 0;
}

Outline outline(const Description& description, const compute::ComputeModel* estimates) {
  description.validate();
  const Parallel& whole = description.parallel;
  Parallel parallel = whole;
  parallel.micro_batches = 1;
  auto layers = make_layers(description, 0);
  if (estimates != nullptr) estimate(layers, *estimates);
  const auto assigned = assign_layers(layers, whole);
  const Placement placement(whole);
  Outline result;
  result.stage_of.resize(whole.num_virtual_stages());
  for (std::uint32_t stage = 0; stage < whole[Axis::pp]; ++stage) {
    const auto all = passes_of(whole, stage);
    std::vector<Pass> passes;
    std::ranges::copy_if(all, std::back_inserter(passes), [](const Pass& pass) { return pass.micro_batch == 0; });
    StageOutline made = outline_of_stage(parallel, assigned, stage, passes);
    made.first = outline_of(whole, stage, all.front());
    made.last = outline_of(whole, stage, all.back());
    const NpuId first = placement.in_stage(NpuId(0), stage);
    for (const std::uint32_t number : made.structure.groups) {
      const auto kind = static_cast<GroupKind>(number);
      made.groups.push_back({role_of(kind), placement.members(kind, NpuId(0))});
    }
    for (std::uint32_t chunk = 0; chunk < whole.num_chunks(); ++chunk)
      result.stage_of[whole.virtual_stage(stage, chunk)] = stage;
    result.first_npus.push_back(first);
    result.stages.push_back(std::move(made));
  }
  for (std::size_t i = 0; i + 1 < assigned.size(); ++i) result.handed.push_back(assigned[i].back().output);
  return result;
}

bool groups_are_alike(const Parallel& parallel, std::span<const std::uint32_t> dimension_sizes) {
  std::vector<std::uint64_t> products{1};
  for (const Axis axis : parallel.placement) {
    const std::uint64_t inside = products.back();
    if (axis == Axis::dp) products.push_back(inside * (parallel[axis] / parallel.sharding.replicas));
    products.push_back(inside * parallel[axis]);
  }
  std::uint64_t product = 1;
  for (const std::uint32_t size : dimension_sizes) products.push_back(product *= size);
  std::ranges::sort(products);
  return std::ranges::adjacent_find(products, [](std::uint64_t a, std::uint64_t b) { return b % a != 0; }) ==
         products.end();
}

}  // namespace orrery::workload
