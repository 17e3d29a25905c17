#include "orrery/communicator/communications.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "orrery/parallel/packing.hpp"

namespace orrery::communicator {
namespace {

std::vector<Communication> gather_sorted(const std::set<Communication>& mine, parallel::Communicator& world) {
  if (world.size() == 1) return {mine.begin(), mine.end()};
  parallel::Packer packer;
  for (const auto& c : mine) {
    packer.put_text(c.group.name);
    packer.put(c.dimensions);
    packer.put(c.custom);
    packer.put_all(std::span<const NpuId>(c.group.members));
  }
  std::vector<std::byte> bytes = packer.take();
  const auto all = world.all_gather(std::span<const std::byte>(bytes));
  std::set<Communication> merged;
  for (parallel::Unpacker unpacker(all); !unpacker.empty();) {
    Communication c;
    c.group.name = unpacker.get_text();
    c.dimensions = unpacker.get<std::uint64_t>();
    c.custom = unpacker.get<std::uint32_t>();
    c.group.members = unpacker.get_all<NpuId>();
    merged.insert(std::move(c));
  }
  return {merged.begin(), merged.end()};
}

}  // namespace

Communications::SubGrid Communications::sub_grid(NpuId npu, const GroupUse& use) const {
  std::uint32_t first = npu.value();
  for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d)
    if ((use.dimensions >> d & 1U) != 0) first -= topology_.coordinate(npu, d) * topology_.stride(d);
  return {use.dimensions, NpuId(first), use.custom};
}

bool Communications::ask(NpuId npu, GroupId group, const GroupUse& use) {
  if (is_whole(group, use.dimensions))
    whole_.try_emplace({group, use.custom});
  else
    sub_grids_.try_emplace(sub_grid(npu, use));
  return is_whole(group, use.dimensions) && use.dimensions != trace::all_dimensions;
}

std::vector<Communication> Communications::agree(const collective::Engine& engine, parallel::Communicator& world) {
  using Asked = std::pair<std::set<Communication>::const_iterator, std::uint32_t*>;
  std::set<Communication> mine;
  std::vector<Asked> asked;
  for (auto& [key, number] : whole_) {
    const auto& [group, custom] = key;
    asked.emplace_back(mine.insert({groups_[group.index()], trace::all_dimensions, custom}).first, &number);
  }
  for (auto& [key, number] : sub_grids_) {
    const auto& [dimensions, first, custom] = key;
    trace::Group group{fmt::format("sub-grid of NPU {}", first.value()), engine.split(first, dimensions)};
    asked.emplace_back(mine.insert({std::move(group), dimensions, custom}).first, &number);
  }
  auto all = gather_sorted(mine, world);
  for (const auto& [own, number] : asked)
    *number = static_cast<std::uint32_t>(std::ranges::lower_bound(all, *own) - all.begin());
  return all;
}

GroupId Communications::number(NpuId npu, GroupId group, const GroupUse& use) const {
  return GroupId(is_whole(group, use.dimensions) ? whole_.at({group, use.custom}) : sub_grids_.at(sub_grid(npu, use)));
}

}  // namespace orrery::communicator
