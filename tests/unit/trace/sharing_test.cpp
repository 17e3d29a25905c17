// What NPUs share: structures, labels, names, and files.
#include <fmt/format.h>

#include <algorithm>

#include "fixture.hpp"

namespace orrery::trace {
namespace {

class Sharing : public TraceTest {};

/// One pipeline stage: a receive, work, a collective and a send, with ids from `first` on.
et::File stage(std::uint64_t first, std::int64_t from, std::int64_t to, std::int64_t tag, std::string_view group) {
  et::File file;
  file.metadata();
  file.add(et::receive(first, "receive", from, 64, tag));
  file.add(et::compute(first + 1, "work").data({first}));
  file.add(et::collective(first + 5, "sum", 0, 4096).text("pg_name", group).data({first + 1}));
  file.add(et::send(first + 9, "send", to, 64, tag + 1).data({first + 5}));
  return file;
}

TEST_F(Sharing, NpusThatDifferInTablesAndIdsShareAll) {
  // The same pipeline stage on two NPUs that differ in peers, groups, tags and ids: graph and labels must be shared,
  // and the tables of each NPU must be its own.
  store_ = make_store({{"a", npus({1, 2})}, {"b", npus({3})}});
  const NpuTrace a = store_.read(write(stage(10, 0, 2, 5, "a"), "1.et"), NpuId(1));
  const NpuTrace b = store_.read(write(stage(900, 2, 4, 70, "b"), "3.et"), NpuId(3));
  EXPECT_EQ(a.graph, b.graph);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(store_.num_structures(), 1u);
  EXPECT_EQ(a.peers, npus({0, 2}));
  EXPECT_EQ(b.peers, npus({2, 4}));
  EXPECT_EQ(a.tags, (std::vector<std::uint64_t>{5, 6}));
  EXPECT_EQ(b.tags, (std::vector<std::uint64_t>{70, 71}));
  EXPECT_NE(a.groups, b.groups);
  EXPECT_EQ(b.id_of(NodeId(3)), 909u);
}

TEST_F(Sharing, APeerThatBothSendsAndReceivesMakesNoOtherStructure) {
  // A stage whose neighbours are one NPU, and one whose neighbours are two: both must share a graph.
  store_ = make_store({{"a", npus({1, 3})}});
  const NpuTrace ends = store_.read(write(stage(10, 0, 0, 5, "a"), "1.et"), NpuId(1));
  const NpuTrace middle = store_.read(write(stage(10, 2, 4, 5, "a"), "3.et"), NpuId(3));
  EXPECT_EQ(ends.graph, middle.graph);
  EXPECT_EQ(ends.peers, npus({0, 0}));
}

TEST_F(Sharing, OtherNamesShareTheGraphButCountAsAStructure) {
  // Three traces that differ in a name and in a number of FLOPs: equal graphs and equal labels must be shared apart
  // from each other.
  const NpuTrace a = store_.read(write(file_of({et::compute(1, "a")}), "a"), NpuId(0));
  const NpuTrace b = store_.read(write(file_of({et::compute(1, "b")}), "b"), NpuId(1));
  const NpuTrace c = store_.read(write(file_of({et::compute(1, "a", 7)}), "c"), NpuId(2));
  EXPECT_EQ(a.graph, b.graph);
  EXPECT_NE(a.labels, b.labels);
  EXPECT_NE(a.graph, c.graph);
  EXPECT_EQ(a.labels, c.labels);
  EXPECT_EQ(store_.num_graphs(), 2u);
  EXPECT_EQ(store_.num_structures(), 3u);
}

TEST_F(Sharing, TheReadingOfALargeFileTellsHowFarItIs) {
  // A file of 2 MB: what is told must grow from piece to piece up to all bytes. What a stop throws there must end the
  // reading and go on, and be no fault of the file.
  et::File large;
  large.metadata();
  for (std::uint64_t id = 0; id < 20; ++id) large.add(et::compute(id, std::string(100'000, 'x')));
  const auto path = write(large);
  const auto all = std::filesystem::file_size(path);
  std::vector<std::uint64_t> told;
  Faults faults;
  const auto stop_at = [&](std::uint64_t end) {
    return [&, end](std::uint64_t bytes, std::uint64_t size) {
      EXPECT_EQ(size, all);
      told.push_back(bytes);
      if (bytes > end) throw Error(ErrorCode::interrupted, "stopped");
    };
  };
  EXPECT_THROW(static_cast<void>(store_.read(path, NpuId(0), faults, stop_at(all / 2))), Error);
  EXPECT_LT(told.back(), all);
  EXPECT_TRUE(faults.empty());
  told.clear();
  Store other = make_store();
  EXPECT_TRUE(other.read(path, NpuId(0), faults, stop_at(all)));
  EXPECT_GT(told.size(), 4u);
  EXPECT_TRUE(std::ranges::is_sorted(told));
  EXPECT_EQ(told.back(), all);
}

// Two NPUs share a structure and a third one has its own. When the third trace is gone, only its structure is freed,
// and its file can be read again.
TEST_F(Sharing, OtherHostsFreeTheStructuresThatNoTraceUses) {
  const auto path = write(file_of({et::compute(1, "c", 7)}), "c");
  const NpuTrace a = store_.read(write(file_of({et::compute(1, "a")}), "a"), NpuId(0));
  const NpuTrace b = store_.read(write(file_of({et::compute(2, "a")}), "b"), NpuId(1));
  { const NpuTrace c = store_.read(path, NpuId(2)); }
  store_.host_instead({});
  EXPECT_EQ(store_.num_graphs(), 1u);
  EXPECT_EQ(store_.num_structures(), 1u);
  const NpuTrace again = store_.read(path, NpuId(2));
  EXPECT_EQ(store_.num_graphs(), 2u);
  EXPECT_EQ(store_.name_of(again, NodeId(0)), "c");
  EXPECT_EQ(a.graph, b.graph);
}

TEST_F(Sharing, PrioritiesTellStructuresApart) {
  // Two traces that differ in comm_priority only: they must not share a graph.
  const auto file = [](std::int32_t priority) {
    return file_of({et::collective(1, "c", 0, 8).int32("comm_priority", priority),
                    et::compute(2, "x").int32("comm_priority", priority)});
  };
  const NpuTrace a = store_.read(write(file(3), "a"), NpuId(0));
  const NpuTrace b = store_.read(write(file(4), "b"), NpuId(1));
  EXPECT_NE(a.graph, b.graph);
  EXPECT_EQ(b.graph->priorities, (std::vector<std::int32_t>{4, 0})) << "of compute it says nothing";
}

TEST_F(Sharing, AFileForSeveralNpusIsReadOnce) {
  // One file that is read for NPUs 0 and 1, and removed in between: both must share everything, with a notice for
  // each, and NPU 3 must be refused because it is not in the group.
  store_ = make_store({{"a", npus({0, 1})}});
  const auto path = write(file_of(
      {et::collective(1, "c", 0, 8).text("pg_name", "a"), et::send(2, "s", 2, 8), et::compute(3, "d").data({99})}));
  const NpuTrace a = store_.read(path, NpuId(0));
  std::filesystem::remove(path);
  const NpuTrace b = store_.read(path, NpuId(1));
  EXPECT_EQ(a.graph, b.graph);
  EXPECT_EQ(a.file, b.file);
  EXPECT_EQ(store_.notices().entries().at("absent-dependency").count, 2u) << "said for each NPU";
  EXPECT_HAS(refusal_of([&] { store_.read(path, NpuId(3)); }),
             "NPU 3, node 1 'c' (byte 9): NPU 3 is not in the node's process group 'a' of 2 members: 0, 1");
}

TEST_F(Sharing, ChecksOfTheNpuHoldForEveryNpuOfAFile) {
  // A file with a send to NPU 2 and one that says that its own end is NPU 0: it must be refused for the NPUs that
  // cannot execute it, though it was read for NPU 0 before.
  const auto path = write(file_of({et::send(1, "s", 2, 8)}), "peer");
  store_.read(path, NpuId(0));
  EXPECT_HAS(refusal_of([&] { store_.read(path, NpuId(2)); }),
             "NPU 2, node 1 's' (byte 9): the peer is the NPU itself");
  const auto both = write(file_of({et::send(1, "s", 2, 8).int32("comm_src", 0)}), "both");
  store_.read(both, NpuId(0));
  EXPECT_HAS(refusal_of([&] { store_.read(both, NpuId(1)); }),
             "the node's own end is NPU 0, but this is the trace of NPU 1");
}

TEST_F(Sharing, ManyFilesAreForgottenButStayRight) {
  // Twenty files, more than the store remembers, read twice: the second reading must share the structures of the
  // first.
  std::vector<NpuTrace> traces;
  for (int round = 0; round < 2; ++round)
    for (int at = 0; at < 20; ++at)
      traces.push_back(store_.read(write(file_of({et::compute(1, "n", at)}), fmt::format("{}.et", at)), NpuId(0)));
  EXPECT_EQ(store_.num_structures(), 20u);
  for (std::size_t at = 0; at < 20; ++at) {
    EXPECT_EQ(traces[at].graph, traces[at + 20].graph);
    EXPECT_EQ(store_.file(traces[at]), (folder_ / fmt::format("{}.et", at)).string());
  }
}

TEST_F(Sharing, ANodeTakesFewBytes) {
  // 10,000 compute nodes in a chain: a node must take less than 50 bytes with its labels (32 of the node, 4 of a
  // dependency, 8 of the id, 4 of the name, and names repeat), and seven more NPUs must take none.
  et::File file;
  constexpr std::uint64_t num_nodes = 10'000;
  for (std::uint64_t id = 0; id < num_nodes; ++id)
    file.add(et::compute(id, fmt::format("layer{}", id % 100)).data({id == 0 ? num_nodes : id - 1}));
  const NpuTrace trace = read_bytes(file.text());
  // 32 of the node, 4 of a dependency, 8 of the id and 4 of the name; names repeat.
  EXPECT_LT(static_cast<double>(store_.bytes()) / static_cast<double>(num_nodes), 50.0);
  EXPECT_LT(static_cast<double>(trace.graph->bytes()) / static_cast<double>(num_nodes), 36.1);
  const std::size_t before = store_.bytes();
  for (std::uint32_t npu = 1; npu < 8; ++npu) store_.read(write(file, fmt::format("{}.et", npu)), NpuId(npu));
  EXPECT_EQ(store_.bytes(), before);
}

TEST_F(Sharing, NamesDoNotDependOnTheFileBefore) {
  // Six files with names in different orders: each must have its own names, and files with equal names must share
  // labels.
  const std::vector<std::vector<std::string>> files = {
      {"a", "b", "c", "b"},          {"a", "b", "c", "b"}, {"b", "a", "c"}, {"c"},
      {"c", "", "b", "d", "a", "e"}, {"a", "b", "c", "b"}};
  std::vector<NpuTrace> traces;
  for (const auto& names : files) {
    et::File file;
    for (std::uint64_t id = 0; id < names.size(); ++id) file.add(et::compute(id, names[id]));
    traces.push_back(store_.read(write(file, fmt::format("{}.et", traces.size())), NpuId(0)));
    for (std::uint32_t id = 0; id < names.size(); ++id) EXPECT_EQ(store_.name_of(traces.back(), NodeId(id)), names[id]);
  }
  EXPECT_EQ(traces.front().labels, traces[1].labels);
  EXPECT_EQ(traces.front().labels, traces.back().labels);
}

TEST_F(Sharing, ManyNamesKeepTheirNumbers) {
  // A file of 5,000 different names and one of 70,000 characters: every name must be found, and messages must show
  // the long one shortened.
  et::File file;
  for (std::uint64_t id = 0; id < 5000; ++id) file.add(et::compute(id, fmt::format("node {}", id)));
  file.add(et::compute(5000, std::string(70'000, 'x')));
  const NpuTrace trace = read_bytes(file.text());
  for (std::uint32_t at = 0; at < 5000; ++at) ASSERT_EQ(store_.name_of(trace, NodeId(at)), fmt::format("node {}", at));
  EXPECT_EQ(store_.name_of(trace, NodeId(5000)).size(), 70'000u);
  EXPECT_LT(store_.place(trace, NpuId(0), NodeId(5000)).node_name.size(), 100u);
}

}  // namespace
}  // namespace orrery::trace
