#include "groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <span>

#include "orrery/base/mix_all.hpp"
#include "orrery/base/text.hpp"

namespace orrery::trace {
namespace {

constexpr std::size_t most_names_listed = 5;

/// Says whether a group is the world: it has no members, or all NPUs in ascending order.
bool is_world(const std::vector<NpuId>& members, std::uint32_t num_npus) {
  if (members.size() != num_npus) return members.empty();
  for (std::uint32_t at = 0; at < num_npus; ++at)
    if (members[at].value() != at) return false;
  return true;
}

/// Turns the number of a group that a producer wrote as a float, "3.0", into "3". Other names stay as they are.
std::string_view without_fraction(std::string_view name) {
  const auto point = name.find('.');
  if (point == std::string_view::npos || point == 0) return name;
  const bool digits = name.find_first_not_of("0123456789") == point;
  const bool zeros = point + 1 < name.size() && name.find_first_not_of('0', point + 1) == std::string_view::npos;
  return digits && zeros ? name.substr(0, point) : name;
}

}  // namespace

Groups::Groups(NamedGroups named, const ReadOptions& options)
    : named_(std::move(named)),
      num_npus_(options.npu_limit()),
      alone_(options.alone),
      has_file_(!named_.empty()),
      unknown_(options.alone || options.groups_unknown) {}

GroupId Groups::intern(std::string_view name, std::vector<NpuId> members) {
  if (is_world(members, num_npus_)) members.clear();
  const std::uint64_t hash = mix_all(mix_all(0, std::span(name)), std::span<const NpuId>(members));
  const auto [begin, end] = ids_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    const Group& known = groups_[at->second.index()];
    if (known.name == name && known.members == members) return at->second;
  }
  const GroupId id(static_cast<std::uint32_t>(groups_.size()));
  groups_.push_back({std::string(name), std::move(members)});
  ids_.emplace(hash, id);
  return id;
}

GroupId Groups::intern_unlisted(std::string_view name) {
  const GroupId group = intern(name, {});
  if (std::ranges::find(unlisted_, group) == unlisted_.end()) unlisted_.push_back(group);
  return group;
}

std::optional<RegularGroup> Groups::find_regular(std::string_view name, const ParsedTrace& parsed,
                                                 const Place& place) const {
  if (unknown_ || named_.contains(name)) return {};
  const auto defined = parsed.definitions.find(name);
  if (defined == parsed.definitions.end() || !defined->second.regular) return {};
  const auto [size, stride] = *defined->second.regular;
  const bool fits = size > 0 && stride > 0 && size <= num_npus_ && stride <= num_npus_;
  if (!fits || num_npus_ % (size * stride) != 0)
    throw Error(ErrorCode::bad_input, place,
                fmt::format("the groups '{}' have {} every {} NPUs, but the system has {}", shown(name),
                            counted(size, "member"), stride, counted(num_npus_, "NPU")),
                "a system of a multiple of both",
                "Change the degrees of parallelism in the file, or the size of the system.");
  return defined->second.regular;
}

GroupId Groups::intern(std::string_view name, const RegularGroup& regular, NpuId npu) {
  const std::uint64_t block = regular.size * regular.stride;
  std::uint64_t member = npu.value() / block * block + npu.value() % regular.stride;
  std::vector<NpuId> members;
  members.reserve(regular.size);
  for (std::uint64_t i = 0; i < regular.size; ++i, member += regular.stride)
    members.emplace_back(static_cast<std::uint32_t>(member));
  return intern(name, std::move(members));
}

GroupId Groups::world() { return intern({}, {}); }

std::vector<NpuId> Groups::checked_members(const GroupDefinition& definition, std::string_view name,
                                           const Place& place) const {
  const auto fail = [&](std::string_view found) {
    throw Error(ErrorCode::bad_input, place, fmt::format("process group '{}' of this trace {}", shown(name), found));
  };
  if (definition.conflicting) fail("is defined twice with different members");
  std::vector<NpuId> members;
  std::vector<bool> seen(num_npus_, false);
  for (const std::uint64_t rank : definition.members) {
    if (rank >= num_npus_) fail(fmt::format("has member {}, but the system has {}", rank, counted(num_npus_, "NPU")));
    if (seen[rank]) fail(fmt::format("lists member {} twice", rank));
    seen[rank] = true;
    members.emplace_back(static_cast<std::uint32_t>(rank));
  }
  return members;
}

void Groups::fail_unknown(std::string_view name, const ParsedTrace& parsed, const Place& place) const {
  // Every node of a trace may name an unknown group: only the first names are looked at.
  std::set<std::string_view> known;
  for (const auto& [its_name, members] : named_ | std::views::take(most_names_listed)) known.insert(its_name);
  for (const auto& [its_name, definition] : parsed.definitions | std::views::take(most_names_listed))
    known.insert(its_name);
  std::string listed;
  for (const std::string_view its_name : known | std::views::take(most_names_listed))
    listed += fmt::format("{}'{}'", listed.empty() ? "" : ", ", shown(its_name));
  const std::size_t total = named_.size() + parsed.definitions.size();  // a name may be in both
  if (std::max({known.size(), named_.size(), parsed.definitions.size()}) > most_names_listed)
    listed += named_.empty() || parsed.definitions.empty() ? fmt::format(", ... ({} in all)", total) : ", ...";
  throw Error(ErrorCode::bad_input, place, fmt::format("process group '{}' is not known", shown(name)),
              known.empty() ? "the name of a group, of which neither this trace nor a communicator file defines any"
                            : "one of " + listed,
              "Groups come from the communicator file or from process_group:init nodes.");
}

GroupId Groups::id_of_named(NamedGroups::const_iterator named) {
  const auto known = ids_of_named_.find(named->first);
  if (known != ids_of_named_.end()) return known->second;
  const GroupId id = intern(named->first, named->second);
  ids_of_named_.emplace(named->first, id);
  return id;
}

void Groups::list(GroupId group, std::vector<NpuId> members) {
  if (is_world(members, num_npus_)) members.clear();
  Group& listed = groups_[group.index()];
  listed.members = members;
  ids_of_named_.emplace(listed.name, group);
  named_.emplace(listed.name, std::move(members));
  std::erase(unlisted_, group);
}

bool Groups::is_same(const GroupDefinition& definition, GroupId id) const {
  std::vector<NpuId> members;
  for (const std::uint64_t rank : definition.members) {
    if (rank >= num_npus_) return false;
    members.emplace_back(static_cast<std::uint32_t>(rank));
  }
  if (is_world(members, num_npus_)) members.clear();
  return !definition.conflicting && members == groups_[id.index()].members;
}

GroupId Groups::resolve(std::string_view name, const ParsedTrace& parsed, const Place& place, Notices& notices) {
  if (unknown_) return intern(name, {});
  if (const auto known = find(name, parsed, place, notices)) return *known;
  const std::string_view whole = without_fraction(name);
  if (whole.size() < name.size()) {
    notices.add("group-number", fmt::format("process group '{}' is not defined: it is read as '{}'", name, whole));
    if (const auto known = find(whole, parsed, place, notices)) return *known;
  }
  if (whole != "0" && has_file_) fail_unknown(name, parsed, place);
  if (whole != "0") return intern_unlisted(whole);
  notices.add("group-0", "process group '0' is not defined: it is read as all NPUs");
  return world();
}

std::optional<GroupId> Groups::find(std::string_view name, const ParsedTrace& parsed, const Place& place,
                                    Notices& notices) {
  if (name.empty()) return world();
  const auto defined = parsed.definitions.find(name);
  const auto named = named_.find(name);
  if (named == named_.end()) {
    if (defined == parsed.definitions.end()) return std::nullopt;
    return intern(name, checked_members(defined->second, name, place));
  }
  const GroupId id = id_of_named(named);
  if (defined != parsed.definitions.end() && !is_same(defined->second, id))
    notices.add("group-defined-twice", fmt::format("process group '{}' has other members in the communicator file than "
                                                   "in the trace: those of the file count",
                                                   shown(name)));
  return id;
}

}  // namespace orrery::trace
