#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "orrery/base/notices.hpp"
#include "orrery/trace/store.hpp"
#include "parsed_trace.hpp"

namespace orrery::trace {

/// The process groups that traces use, each distinct (name, members) once.
class Groups {
 public:
  Groups(NamedGroups named, const ReadOptions& options);

  /// Returns the group that a node of this trace names. A group of the communicator file goes before one that the trace
  /// defines. Without a communicator file, a name that nobody lists becomes one of the unlisted groups. Throws Error
  /// (bad_input) at `place` for a group that is faulty or unknown.
  GroupId resolve(std::string_view name, const ParsedTrace& parsed, const Place& place, Notices& notices);
  /// Returns the form of a group that this trace defines for any NPU; nothing if it defines members, or a communicator
  /// file does. Throws Error (bad_input) at `place` if such groups do not divide the system.
  std::optional<RegularGroup> find_regular(std::string_view name, const ParsedTrace& parsed, const Place& place) const;
  /// Returns the group of this form that holds the NPU. Cost O(members).
  GroupId intern(std::string_view name, const RegularGroup& regular, NpuId npu);
  /// Returns the group of all NPUs.
  GroupId world();
  /// Returns the group with this name and these members, and adds it if need be; no members: all NPUs.
  GroupId intern(std::string_view name, std::vector<NpuId> members);
  /// Returns a group that traces name but nobody lists.
  GroupId intern_unlisted(std::string_view name);
  /// Returns the groups that traces name but that neither they nor a communicator file list, in the order of their
  /// first use. They have no members until `list` gives them some.
  const std::vector<GroupId>& unlisted() const { return unlisted_; }
  /// Says who the members of such a group are.
  void list(GroupId group, std::vector<NpuId> members);
  /// Says whether traces are looked at without their system.
  bool alone() const { return alone_; }

  const Group& operator[](GroupId id) const { return groups_[id.index()]; }
  const std::vector<Group>& all() const { return groups_; }

 private:
  std::optional<GroupId> find(std::string_view name, const ParsedTrace& parsed, const Place& place, Notices& notices);
  GroupId id_of_named(NamedGroups::const_iterator named);
  bool is_same(const GroupDefinition& definition, GroupId id) const;
  std::vector<NpuId> checked_members(const GroupDefinition& definition, std::string_view name,
                                     const Place& place) const;
  [[noreturn]] void fail_unknown(std::string_view name, const ParsedTrace& parsed, const Place& place) const;

  NamedGroups named_;
  std::uint32_t num_npus_;
  bool alone_;
  bool has_file_;  ///< a communicator file lists groups: a name that it does not have is a fault
  bool unknown_;   ///< the names that traces use are not looked up
  std::vector<Group> groups_;
  std::vector<GroupId> unlisted_;
  std::unordered_multimap<std::uint64_t, GroupId> ids_;       ///< all groups, by a hash of name and members
  std::map<std::string, GroupId, std::less<>> ids_of_named_;  ///< groups of the communicator file
};

}  // namespace orrery::trace
