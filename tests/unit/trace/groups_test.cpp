// Process groups: names, definitions in traces and in communicator files.
#include <fmt/format.h>

#include "fixture.hpp"

namespace orrery::trace {
namespace {

class ProcessGroups : public TraceTest {
 protected:
  static et::Node in_group(std::uint64_t id, std::string_view group) {
    return et::collective(id, "c", 0, 64).text("pg_name", group);
  }
  static et::Node init(std::string_view json) {
    et::Node node(1, "## process_group:init ##", et::metadata);
    node.message(8, et::Message().bytes(1, json));
    return node;
  }
  /// The group of the only collective in such a file, read for `npu`.
  Group group_of(std::initializer_list<et::Message> nodes, std::uint32_t npu = 0) {
    const NpuTrace trace = store_.read(write(file_of(nodes), std::to_string(num_files_++)), NpuId(npu));
    EXPECT_EQ(trace.groups.size(), 1u);
    return store_.groups()[trace.groups.at(0).index()];
  }
  std::string refused(std::initializer_list<et::Message> nodes, std::uint32_t npu = 0) {
    return refusal_of([&] { group_of(nodes, npu); });
  }
  std::string refused_file(const std::string& text, std::uint32_t num_npus = 8) {
    return refusal_of([&] { read_group_file(write(text, "g.json"), num_npus); });
  }
  bool said(std::string_view kind) const { return store_.notices().entries().contains(kind); }

  int num_files_ = 0;
};

TEST_F(ProcessGroups, NodesWithoutAGroupAreOfAllNpus) {
  // Collectives without pg_name, with an empty one and with "0" where no group has that name: all must use the group
  // of all NPUs, and only "0" must give a notice.
  const Group world;
  EXPECT_EQ(group_of({et::collective(1, "c", 0, 64)}), world);
  EXPECT_EQ(group_of({in_group(1, "")}), world);
  EXPECT_FALSE(said("group-0"));
  EXPECT_EQ(group_of({in_group(1, "0")}), world);
  EXPECT_TRUE(said("group-0"));
  EXPECT_EQ(group_of({et::collective(1, "c", 0, 64).int64("pg_name", 0)}), world);
  EXPECT_EQ(group_of({in_group(1, ""), in_group(2, "0"), et::collective(3, "c", 0, 64)}), world) << "one slot";
  EXPECT_EQ(store_.groups().size(), 1u);
}

TEST_F(ProcessGroups, NamesAreLookedUpInTheCommunicatorFile) {
  // A communicator file with groups 0, dp and 7: nodes must get the members in the order listed, also for a name that
  // is a number or a number written as a float. A group of all NPUs in order must have no members.
  store_ = make_store({{"0", npus({0, 1})}, {"dp", npus({4, 0})}, {"7", npus({0, 1, 2, 3, 4, 5, 6, 7})}});
  EXPECT_EQ(group_of({in_group(1, "0")}), (Group{"0", npus({0, 1})}));
  EXPECT_EQ(group_of({in_group(1, "dp")}), (Group{"dp", npus({4, 0})})) << "members stay in the order listed";
  EXPECT_EQ(group_of({et::collective(1, "c", 0, 64).int32("pg_name", 7)}), (Group{"7", {}})) << "all NPUs in order";
  EXPECT_EQ(group_of({in_group(1, "0.0")}), (Group{"0", npus({0, 1})})) << "a number written as a float";
  EXPECT_TRUE(said("group-number"));
  EXPECT_FALSE(said("group-0"));
}

TEST_F(ProcessGroups, AnUnknownGroupIsRefusedWithTheKnownOnes) {
  // A node names a group that nobody defines: the message must give the node and up to five of the groups that are
  // known.
  store_ = make_store({{"a", npus({0})}, {"b", npus({0})}});
  EXPECT_HAS(refused({in_group(5, "x")}),
             "NPU 0, node 5 'c' (byte 9): process group 'x' is not known; expected one of 'a', 'b'");
  EXPECT_HAS(refused({in_group(5, "1.5")}), "process group '1.5' is not known");
  NamedGroups many;
  for (int at = 0; at < 40; ++at) many[fmt::format("g{:02}", at)] = npus({0});
  store_ = make_store(many);
  EXPECT_HAS(refused({in_group(5, "x")}), "one of 'g00', 'g01', 'g02', 'g03', 'g04', ... (40 in all)");
}

TEST_F(ProcessGroups, WithoutAFileANameIsAGroupThatIsListedLater) {
  // Traces of NPUs 0 and 2 that name a group which nobody lists: the store must give the group without members, and
  // with the members as soon as it is told who they are, also to traces that are read afterwards.
  read({in_group(5, "x")});
  ASSERT_EQ(store_.unlisted_groups().size(), 1U);
  const GroupId group = store_.unlisted_groups().front();
  store_.list_group(group, npus({0, 2}));
  EXPECT_TRUE(store_.unlisted_groups().empty());
  EXPECT_EQ(store_.groups()[group.index()], (Group{"x", npus({0, 2})}));
  const NpuTrace later = store_.read(write(file_of({in_group(6, "x")}), "later.et"), NpuId(2));
  EXPECT_EQ(later.groups, std::vector<GroupId>{group});
}

TEST_F(ProcessGroups, AnNpuMustBeInItsGroup) {
  // A group of NPUs 1 and 2 in the traces of NPUs 0 and 2: the first must be refused with the members, the second
  // read.
  store_ = make_store({{"a", npus({1, 2})}});
  EXPECT_HAS(refused({in_group(5, "a")}),
             "NPU 0, node 5 'c' (byte 9): NPU 0 is not in the node's process group 'a' of 2 members: ");
  EXPECT_EQ(group_of({in_group(5, "a")}, 2).name, "a");
}

TEST_F(ProcessGroups, ATraceMayDefineGroups) {
  // process_group:init nodes that define groups as lists, as objects and without ranks, also inside other text and
  // after their use: collectives must get these groups without a notice.
  const std::string json =
      R"([{"pg_name": "tp", "ranks": [2, 0]}, {"pg_name": 4, "ranks": {"0": 0, "3": 1}}, {"pg_name": "w", "ranks": []}])";
  EXPECT_EQ(group_of({init(json), in_group(5, "tp")}), (Group{"tp", npus({2, 0})}));
  EXPECT_EQ(group_of({init(json), in_group(5, "4")}), (Group{"4", npus({0, 3})}));
  EXPECT_EQ(group_of({in_group(5, "w"), init(json)}), (Group{"w", {}}));
  EXPECT_EQ(group_of({init(fmt::format("['{}']", json)), in_group(5, "tp")}).members, npus({2, 0}));
  EXPECT_EQ(group_of({init(R"([{"pg_name": "0", "ranks": [0, 1]}])"), in_group(5, "0")}), (Group{"0", npus({0, 1})}));
  EXPECT_FALSE(said("process-group-init"));
}

TEST_F(ProcessGroups, ANameMayHaveOtherMembersOnOtherNpus) {
  // Two NPUs define a group "1" with different members: these must be two groups, and the traces must share one
  // structure.
  const Group a = group_of({init(R"([{"pg_name": "1", "ranks": [0, 1]}])"), in_group(5, "1")}, 0);
  const Group b = group_of({init(R"([{"pg_name": "1", "ranks": [2, 3]}])"), in_group(5, "1")}, 2);
  EXPECT_NE(a, b);
  EXPECT_EQ(store_.groups().size(), 2u);
  EXPECT_EQ(store_.num_structures(), 1u);
}

TEST_F(ProcessGroups, AFaultyDefinitionIsRefusedWhenItIsUsed) {
  // Definitions with a member out of range, a member twice, a name twice, and text that is not JSON: each must be
  // accepted if no node uses it and refused if one does; unreadable text must give a notice.
  const auto with = [](std::string_view members) {
    return init(fmt::format(R"([{{"pg_name": "g", "ranks": {}}}])", members));
  };
  EXPECT_EQ(group_of({with("[0, 99]"), in_group(5, "")}), Group{});
  EXPECT_HAS(refused({with("[0, 99]"), in_group(5, "g")}),
             "process group 'g' of this trace has member 99, but the system has 8 NPUs");
  EXPECT_HAS(refused({with("[0, 1, 0]"), in_group(5, "g")}), "lists member 0 twice");
  EXPECT_HAS(
      refused({init(R"([{"pg_name": "g", "ranks": [0]}, {"pg_name": "g", "ranks": [0, 1]}])"), in_group(5, "g")}),
      "is defined twice with different members");
  EXPECT_EQ(group_of({init("no JSON"), in_group(5, "")}), Group{});
  EXPECT_TRUE(said("process-group-init"));
}

TEST_F(ProcessGroups, TheCommunicatorFileGoesBeforeTheTrace) {
  // The communicator file and the trace both define group g: the members of the file must count, with a notice if
  // those of the trace are different.
  store_ = make_store({{"g", npus({0, 1})}});
  EXPECT_EQ(group_of({init(R"([{"pg_name": "g", "ranks": [0, 1]}])"), in_group(5, "g")}).members, npus({0, 1}));
  EXPECT_FALSE(said("group-defined-twice"));
  EXPECT_EQ(group_of({init(R"([{"pg_name": "g", "ranks": [0, 2]}])"), in_group(5, "g")}).members, npus({0, 1}));
  EXPECT_TRUE(said("group-defined-twice"));
  EXPECT_EQ(store_.groups().size(), 1u);
}

TEST_F(ProcessGroups, AGroupOfOneStaysACollective) {
  // A collective in a group whose only member is the NPU: the group must keep its member.
  store_ = make_store({{"me", npus({0})}});
  EXPECT_EQ(group_of({in_group(5, "me")}).members, npus({0}));
}

TEST_F(ProcessGroups, ACommunicatorFileIsRead) {
  // A communicator file with two groups, and one without any: the groups must be as listed.
  const auto groups = read_group_file(write("{\"1\": [0, 3],\n \"dp\": [2]}\n", "g.json"), 4);
  EXPECT_EQ(groups, (NamedGroups{{"1", npus({0, 3})}, {"dp", npus({2})}}));
  EXPECT_TRUE(read_group_file(write("{}", "g.json"), 4).empty());
}

TEST_F(ProcessGroups, AFaultyCommunicatorFileIsRefusedWithItsLine) {
  // Communicator files with every kind of fault: the message must give the line, the name of the group and what is
  // wrong.
  EXPECT_HAS(refused_file("{\n\"1\": [0,\n 8]}"), "g.json:3: key '1': member 8 is out of range; expected 0 to 7");
  EXPECT_HAS(refused_file("{\"1\": [0,\n-1\n]}"), "g.json:2: key '1': member -1 is out of range");
  EXPECT_HAS(refused_file("{\"1\": [0, 0]}"), "g.json:1: key '1': member 0 is listed twice");
  EXPECT_HAS(refused_file("{\"1\": [0],\n\n\"1\": [1]}"), "g.json:3: key '1': the process group is defined twice");
  EXPECT_HAS(refused_file("{\"1\": []}"), "the process group is empty");
  EXPECT_HAS(refused_file("{\"\": [1]}"), "the name of a process group is empty");
  EXPECT_HAS(refused_file("[1, 2]"), "a list is not expected here; expected {\"NAME\": [NPU, ...], ...}");
  EXPECT_HAS(refused_file("{\"1\": {\"2\": [0]}}"), "an object is not expected here");
  EXPECT_HAS(refused_file("{\"1\": [[0]]}"), "a list is not expected here");
  EXPECT_HAS(refused_file("{\"1\": [0.5]}"), "0.5 is not expected here");
  EXPECT_HAS(refused_file("{\"1\": [\"0\"]}"), "\"0\" is not expected here");
  EXPECT_HAS(refused_file("{\"1\": 3}"), "3 is not expected here");
  EXPECT_HAS(refused_file("{\"1\": null}"), "null is not expected here");
  EXPECT_HAS(refused_file("{\"1\": true}"), "a truth value is not expected here");
  EXPECT_HAS(refused_file("{\"1\": [0],\n\"2\": [1"), "g.json:2: key '2': the file ends early");
  EXPECT_HAS(refused_file(""), "the file ends early");
  EXPECT_HAS(refused_file("{\"1\": [0],\n oops}"), "g.json:2: no JSON at");
  EXPECT_HAS(refusal_of([&] { read_group_file(folder_ / "none.json", 8); }), "none.json: there is no such file");
  EXPECT_HAS(refusal_of([&] { read_group_file(folder_, 8); }), "this is a directory");
}

}  // namespace
}  // namespace orrery::trace
