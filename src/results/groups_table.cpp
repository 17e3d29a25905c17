#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "tables.hpp"

namespace orrery::results {
namespace {

/// The groups in the order of the file, as lists of names and members.
struct GroupLists {
  std::vector<std::string> names;
  std::vector<std::uint64_t> offsets{0};
  std::vector<std::uint32_t> members;

  void add(const trace::Group& group, std::uint32_t num_npus) {
    names.push_back(group.name);
    for (const NpuId npu : group.members) members.push_back(npu.value());
    if (group.members.empty()) {
      members.resize(members.size() + num_npus);
      std::iota(members.end() - num_npus, members.end(), 0U);
    }
    offsets.push_back(members.size());
  }
};

void write_lists(File& file, const GroupLists& lists) {
  file.group("/groups", "process groups: group g has the members offsets[g] to offsets[g + 1] - 1");
  file.scale("/groups/group", lists.names.size(), {"1", "group", "index of the process group"});
  file.strings("/groups/names", lists.names, {"", "name", "name of the process group; empty: all NPUs"});
  file.attach("/groups/names", "/groups/group");
  file.scale("/groups/bound", lists.offsets.size(), {"1", "bound", "index of an offset"});
  file.column<std::uint64_t>(
      "/groups/offsets", lists.offsets,
      {"1", "offset", "index into members of the group's first member; the last value is the number of all members"});
  file.attach("/groups/offsets", "/groups/bound");
  file.scale("/groups/member", lists.members.size(), {"1", "member", "row of members"});
  file.column<std::uint32_t>("/groups/members", lists.members,
                             {"1", "member", "NPU, in the order in which the group lists it"});
  file.attach("/groups/members", "/groups/member");
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
    GroupLists lists;
    for (const auto index : order) lists.add(run.groups[index], run.num_npus);
    write_lists(file, lists);
  });
  output.world().broadcast(position, Rank(0));
  return position;
}

}  // namespace orrery::results
