#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tables.hpp"

namespace orrery::results {
namespace {

constexpr std::size_t most_members = 1 << 18;  // that are written at a time

/// Writes the members of the groups in this order: `num_members` in all.
void write_members(File& file, const RunDescription& run, std::span<const std::uint32_t> order,
                   std::uint64_t num_members) {
  const std::string path = "/groups/members";
  file.scale("/groups/member", num_members, {"1", "member", "row of members"});
  file.create<std::uint32_t>(path, num_members, {"1", "member", "NPU, in the order in which the group lists it"});
  std::vector<std::uint32_t> members;
  std::uint64_t first = 0;
  const auto flush = [&] {
    file.write<std::uint32_t>(path, first, members);
    first += members.size();
    members.clear();
  };
  for (const auto index : order) {
    const trace::Group& group = run.groups[index];
    for (const NpuId npu : group.members) members.push_back(npu.value());
    if (group.members.empty()) {
      members.resize(members.size() + run.num_npus);
      std::iota(members.end() - run.num_npus, members.end(), 0U);
    }
    if (members.size() >= most_members) flush();
  }
  flush();
  file.attach(path, "/groups/member");
}

/// Writes the groups in this order, as lists of names and members.
void write_lists(File& file, const RunDescription& run, std::span<const std::uint32_t> order) {
  std::vector<std::uint64_t> offsets{0};
  for (const auto index : order) {
    const auto& members = run.groups[index].members;
    offsets.push_back(offsets.back() + (members.empty() ? run.num_npus : members.size()));
  }
  file.group("/groups", "process groups: group g has the members offsets[g] to offsets[g + 1] - 1");
  file.scale("/groups/group", order.size(), {"1", "group", "index of the process group"});
  file.strings("/groups/names", order.size(),
               [&](std::size_t i) -> std::string_view { return run.groups[order[i]].name; },
               {"", "name", "name of the process group; empty: all NPUs"});
  file.attach("/groups/names", "/groups/group");
  file.scale("/groups/bound", offsets.size(), {"1", "bound", "index of an offset"});
  file.column<std::uint64_t>(
      "/groups/offsets", offsets,
      {"1", "offset", "index into members of the group's first member; the last value is the number of all members"});
  file.attach("/groups/offsets", "/groups/bound");
  write_members(file, run, order, offsets.back());
}

}  // namespace

std::vector<std::uint32_t> write_groups(Output& output, const RunDescription& run) {
  std::vector<std::uint32_t> position;
  output.on_root([&](File& file) {
    std::vector<std::uint32_t> order(run.groups.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return run.groups[a] < run.groups[b]; });
    position.resize(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
    write_lists(file, run, order);
  });
  output.world().broadcast(position, Rank(0));
  return position;
}

}  // namespace orrery::results
