#include "cells.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <span>

namespace orrery::model {
namespace {

constexpr std::uint32_t most_members = 64;  ///< whose state fits a core's cache

/// Returns [uses] the number of nodes of a program that use each group.
std::vector<std::uint64_t> count_uses(const npu::Program& program) {
  std::vector<std::uint64_t> counts(program.uses.size());
  const auto& nodes = program.graph->nodes;
  for (std::uint32_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].is_of_group()) ++counts[program.use_of_node(NodeId(i))];
  return counts;
}

/// Returns the group of few members with which an NPU has most collectives, if there is one.
std::optional<GroupId> closest_group(const npu::RunContext& run, const npu::NpuSpec& npu,
                                     std::span<const std::uint64_t> counts) {
  std::optional<GroupId> closest;
  std::uint64_t most = 0;
  for (std::size_t use = 0; use < counts.size(); ++use) {
    const std::uint32_t members = run.communicators[npu.groups[use].index()].num_participants(run.hosting.num_npus());
    if (members < 2 || members > most_members || counts[use] <= most) continue;
    most = counts[use];
    closest = npu.groups[use];
  }
  return closest;
}

}  // namespace

std::vector<std::uint32_t> cells_of(const npu::RunContext& run) {
  std::map<const npu::Program*, std::vector<std::uint64_t>> counts;
  std::map<GroupId, std::uint32_t> of_group;
  std::vector<std::uint32_t> cells(run.hosting.num_npus());
  std::uint32_t num_cells = 0, without_group = 0, last = 0;  // the last cell of NPUs without such a group
  for (const npu::NpuSpec& npu : run.npus) {
    const auto [found, added] = counts.try_emplace(npu.program);
    if (added) found->second = count_uses(*npu.program);
    std::uint32_t& cell = cells[npu.id.index()];
    if (const auto group = closest_group(run, npu, found->second)) {
      const auto [known, is_new] = of_group.try_emplace(*group, num_cells);
      cell = known->second;
      num_cells += is_new;
    } else {
      cell = without_group++ % most_members == 0 ? num_cells++ : last;
      last = cell;
    }
  }
  return cells;
}

}  // namespace orrery::model
