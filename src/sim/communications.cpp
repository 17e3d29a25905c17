#include "communications.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "packing.hpp"

namespace orrery::sim {
namespace {

std::vector<Communication> gather_sorted(const std::set<Communication>& mine, parallel::Communicator& world) {
  if (world.size() == 1) return {mine.begin(), mine.end()};
  Packer packer;
  for (const auto& c : mine) {
    packer.put_text(c.group.name);
    packer.put(c.dimensions);
    packer.put_all(std::span<const NpuId>(c.group.members));
  }
  std::vector<std::byte> bytes = packer.take();
  const auto all = world.all_gather(std::span<const std::byte>(bytes));
  std::set<Communication> merged;
  for (Unpacker unpacker(all); !unpacker.empty();) {
    Communication c;
    c.group.name = unpacker.get_text();
    c.dimensions = unpacker.get<std::uint64_t>();
    c.group.members = unpacker.get_all<NpuId>();
    merged.insert(std::move(c));
  }
  return {merged.begin(), merged.end()};
}

}  // namespace

Communications::SubGrid Communications::sub_grid(NpuId npu, std::uint64_t dimensions) const {
  std::uint32_t first = npu.value();
  for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d)
    if ((dimensions >> d & 1U) != 0) first -= topology_.coordinate(npu, d) * topology_.stride(d);
  return {dimensions, NpuId(first)};
}

bool Communications::ask(NpuId npu, GroupId group, std::uint64_t dimensions) {
  if (is_whole(group, dimensions))
    whole_[group.index()] = 0;
  else
    sub_grids_.try_emplace(sub_grid(npu, dimensions));
  return is_whole(group, dimensions) && dimensions != trace::all_dimensions;
}

std::vector<Communication> Communications::agree(const collective::Engine& engine, parallel::Communicator& world) {
  using Asked = std::pair<std::set<Communication>::const_iterator, std::uint32_t*>;
  std::set<Communication> mine;
  std::vector<Asked> asked;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (whole_[g] != unknown) asked.emplace_back(mine.insert({groups_[g], trace::all_dimensions}).first, &whole_[g]);
  for (auto& [key, number] : sub_grids_) {
    const auto& [dimensions, first] = key;
    trace::Group group{fmt::format("sub-grid of NPU {}", first.value()), engine.split(first, dimensions)};
    asked.emplace_back(mine.insert({std::move(group), dimensions}).first, &number);
  }
  auto all = gather_sorted(mine, world);
  for (const auto& [own, number] : asked)
    *number = static_cast<std::uint32_t>(std::ranges::lower_bound(all, *own) - all.begin());
  return all;
}

GroupId Communications::number(NpuId npu, GroupId group, std::uint64_t dimensions) const {
  return GroupId(is_whole(group, dimensions) ? whole_[group.index()] : sub_grids_.at(sub_grid(npu, dimensions)));
}

}  // namespace orrery::sim
