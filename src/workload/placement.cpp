#include "placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "operators.hpp"

namespace orrery::workload {
namespace {

/// Coordinates along an axis that members of a group have: every `step`-th one.
struct Steps {
  Axis axis{};
  std::uint32_t step = 1, count = 1;

  std::uint32_t first(std::uint32_t own) const { return own - own / step % count * step; }
};

/// Returns how the members of a group differ.
std::vector<Steps> steps_of(GroupKind kind, const Parallel& parallel) {
  const auto along = [&](Axis axis) { return Steps{axis, 1, parallel[axis]}; };
  const Steps shards{Axis::dp, 1, parallel.shards_along_dp()};
  switch (kind) {
    case GroupKind::tensor:
      return {along(Axis::tp)};
    case GroupKind::context:
      return {along(Axis::cp)};
    case GroupKind::expert:
      if (parallel.expert_tp() < parallel[Axis::tp]) return {along(Axis::tp), along(Axis::ep)};
      return {along(Axis::ep)};
    case GroupKind::data:
    case GroupKind::data_sums:
      return {along(Axis::cp), along(Axis::ep), shards};
    case GroupKind::expert_data:
    case GroupKind::expert_data_sums:
      return {along(Axis::cp), shards};
    case GroupKind::embedding:  // the first and the last stage
      return {{Axis::pp, parallel[Axis::pp] - 1, 2}};
    case GroupKind::all:
      return {along(Axis::tp), along(Axis::cp), along(Axis::ep), along(Axis::dp), along(Axis::pp)};
    case GroupKind::replicas:
      return {{Axis::dp, shards.count, parallel.sharding.replicas}};
  }
  return {};
}

constexpr std::array<std::string_view, 10> group_names = {"tp",        "cp",  "ep",       "dp",      "edp",
                                                          "embedding", "all", "replicas", "dp_sums", "edp_sums"};

std::size_t at(Axis axis) { return static_cast<std::size_t>(axis); }

}  // namespace

bool exchanges_over_nodes(const Parallel& parallel, std::uint32_t npus_of_node) {
  const auto members = Placement(parallel).members(GroupKind::expert, NpuId(0));
  return members.back().value() / npus_of_node > members.front().value() / npus_of_node;
}

std::string_view name(GroupKind kind) { return group_names[static_cast<std::size_t>(kind)]; }

Placement::Placement(const Parallel& parallel) : parallel_(parallel) {
  std::uint32_t stride = 1;
  for (const Axis axis : parallel.placement) {
    strides_[at(axis)] = stride;
    stride *= parallel[axis];
  }
}

Placement::Coordinates Placement::coordinates(NpuId npu) const {
  Coordinates result;
  for (std::size_t i = 0; i < num_axes; ++i) result[i] = npu.value() / strides_[i] % parallel_.sizes[i];
  return result;
}

std::uint32_t Placement::expert_rank(NpuId npu) const {
  const Coordinates own = coordinates(npu);
  if (parallel_.expert_tp() == parallel_[Axis::tp]) return own[at(Axis::ep)];
  return own[at(Axis::ep)] * parallel_[Axis::tp] + own[at(Axis::tp)];
}

NpuId Placement::npu(const Coordinates& coordinates) const {
  std::uint32_t id = 0;
  for (std::size_t i = 0; i < num_axes; ++i) id += coordinates[i] * strides_[i];
  return NpuId(id);
}

NpuId Placement::in_stage(NpuId npu, std::uint32_t stage) const {
  Coordinates own = coordinates(npu);
  own[at(Axis::pp)] = stage;
  return this->npu(own);
}

bool Placement::has_mirror(GroupKind kind) const {
  return parallel_.is_mirrored() && (kind == GroupKind::data || kind == GroupKind::expert_data ||
                                     kind == GroupKind::data_sums || kind == GroupKind::expert_data_sums);
}

std::uint32_t Placement::mirror(const Coordinates& of) const { return parallel_[Axis::pp] - 1 - of[at(Axis::pp)]; }

NpuId Placement::first_member(GroupKind kind, NpuId npu) const {
  Coordinates first = coordinates(npu);
  for (const Steps& steps : steps_of(kind, parallel_)) first[at(steps.axis)] = steps.first(first[at(steps.axis)]);
  if (has_mirror(kind)) first[at(Axis::pp)] = std::min(first[at(Axis::pp)], mirror(first));
  return this->npu(first);
}

std::vector<NpuId> Placement::members(GroupKind kind, NpuId npu) const {
  std::vector<NpuId> result = {first_member(kind, npu)};
  for (const Steps& steps : steps_of(kind, parallel_)) {
    const std::uint32_t stride = steps.step * strides_[at(steps.axis)];
    const std::size_t before = result.size();
    for (std::uint32_t i = 1; i < steps.count; ++i)
      for (std::size_t k = 0; k < before; ++k) result.emplace_back(result[k].value() + i * stride);
  }
  if (has_mirror(kind)) {
    const std::size_t before = result.size();
    for (std::size_t k = 0; k < before; ++k) result.push_back(in_stage(result[k], mirror(coordinates(result[k]))));
  }
  std::ranges::sort(result);
  return result;
}

std::string Placement::group_name(GroupKind kind, NpuId npu) const {
  std::string name(workload::name(kind));
  const auto along = steps_of(kind, parallel_);
  const Coordinates own = coordinates(first_member(kind, npu));
  for (std::size_t i = 0; i < num_axes; ++i) {
    const auto steps = std::ranges::find(along, static_cast<Axis>(i), &Steps::axis);
    const bool has_all = steps != along.end() && (kind == GroupKind::embedding || steps->count == parallel_.sizes[i]);
    if (!has_all && parallel_.sizes[i] > 1) name += fmt::format("_{}{}", axis_names[i], own[i]);
  }
  return name;
}

}  // namespace orrery::workload
