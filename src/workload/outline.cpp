#include "orrery/workload/outline.hpp"

#include <algorithm>
#include <utility>
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

/// Returns whether two stages have the same layers but for their names.
bool have_alike_layers(const Parallel& parallel, std::span<const std::span<const Layer>> assigned, std::uint32_t a,
                       std::uint32_t b) {
  for (std::uint32_t chunk = 0; chunk < parallel.num_chunks(); ++chunk)
    if (!std::ranges::equal(assigned[parallel.virtual_stage(a, chunk)], assigned[parallel.virtual_stage(b, chunk)],
                            are_alike))
      return false;
  return true;
}

StageOutline outline_with_groups(const Parallel& parallel, std::span<const std::span<const Layer>> assigned,
                                 std::uint32_t stage, std::span<const Pass> passes, const Placement& placement) {
  StageOutline made = outline_of_stage(parallel, assigned, stage, passes);
  for (const std::uint32_t number : made.structure.groups) {
    const auto kind = static_cast<GroupKind>(number);
    made.groups.push_back({role_of(kind), placement.members(kind, NpuId(0))});
  }
  return made;
}

}  // namespace

bool has_outline(const Description& description) {
  const Parallel& parallel = description.parallel;
  return std::holds_alternative<Transformer>(description.model) && !parallel.is_inference() &&
         !parallel.is_mirrored() && !pairs_passes(parallel) && parallel.experts.imbalance == 0;
}

std::vector<NpuId> npus_of_stages(const Parallel& parallel) {
  const Placement placement(parallel);
  std::vector<NpuId> npus;
  for (std::uint32_t stage = 0; stage < parallel[Axis::pp]; ++stage)
    npus.push_back(placement.in_stage(NpuId(0), stage));
  return npus;
}

Outline outline(const Description& description, const compute::ComputeModel* estimates) {
  description.validate();
  const Parallel& whole = description.parallel;
  Parallel parallel = whole;
  parallel.micro_batches = 1;
  const Parallel fewer = with_fewer_micro_batches(whole);
  auto layers = make_layers(description, 0);
  if (estimates != nullptr) estimate(layers, *estimates);
  const auto assigned = assign_layers(layers, whole);
  const Placement placement(whole);
  Outline result;
  result.stage_of.resize(whole.num_virtual_stages());
  std::vector<Pass> passes;  // of a stage and the first micro-batch
  for (std::uint32_t stage = 0; stage < whole[Axis::pp]; ++stage) {
    const auto all = passes_of(fewer, stage);
    const auto passes_before = std::exchange(passes, {});
    std::ranges::copy_if(all, std::back_inserter(passes), [](const Pass& pass) { return pass.micro_batch == 0; });
    for (std::uint32_t chunk = 0; chunk < whole.num_chunks(); ++chunk)
      result.stage_of[whole.virtual_stage(stage, chunk)] = stage;
    OutlineStage& made = result.stages.emplace_back();
    made = {.first_npu = placement.in_stage(NpuId(0), stage),
            .first = outline_of(all.front()),
            .last = outline_of(all.back())};
    // Stages inside the pipeline all receive and send; the first one and the last one do not.
    const bool is_alike = stage > 1 && stage + 1 < whole[Axis::pp] && passes == passes_before &&
                          have_alike_layers(whole, assigned, stage - 1, stage);
    if (!is_alike) result.outlines.push_back(outline_with_groups(parallel, assigned, stage, passes, placement));
    made.outline = static_cast<std::uint32_t>(result.outlines.size() - 1);
  }
  for (std::size_t i = 0; i + 1 < assigned.size(); ++i)
    result.handed.push_back(whole.message_bytes(assigned[i].back().output));
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
