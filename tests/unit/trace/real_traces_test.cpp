// Traces that other tools wrote, from ../shared/traces or the folder that ORRERY_TRACES names. They are not part of the
// repository; without them these tests are skipped.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fixture.hpp"

namespace orrery::trace {
namespace {

class RealTraces : public TraceTest {
 protected:
  /// Unpacks an archive into the test's folder. Returns false if there is no such archive; fails if it cannot be
  /// unpacked.
  bool unpack(const std::string& archive) {
    const char* const given = std::getenv("ORRERY_TRACES");
    const std::filesystem::path traces =
        given != nullptr ? given : std::filesystem::path(ORRERY_SOURCE_DIR) / ".." / "shared" / "traces";
    const auto file = traces / (archive + ".tar.xz");
    if (!std::filesystem::exists(file)) return false;
    EXPECT_EQ(std::system(fmt::format("tar xf '{}' -C '{}'", file.string(), folder_.string()).c_str()), 0);
    return true;
  }

  /// Reads PREFIX.<npu>.et of all NPUs; PREFIX is relative to the archive.
  Store read_all(const std::string& prefix, std::uint32_t num_npus, NamedGroups groups = {}) {
    Store store = make_store(std::move(groups), Dependencies::automatic, num_npus);
    traces_.clear();
    num_nodes_ = 0;
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
      traces_.push_back(store.read(folder_ / fmt::format("{}.{}.et", prefix, npu), NpuId(npu)));
      num_nodes_ += traces_.back().graph->num_nodes();
    }
    return store;
  }

  std::size_t count(const NpuTrace& trace, NodeKind kind) const {
    return static_cast<std::size_t>(std::count_if(trace.graph->nodes.begin(), trace.graph->nodes.end() - 1,
                                                  [kind](const Node& node) { return node.kind == kind; }));
  }

  /// What is kept of each node of the traces, shared parts and tables together.
  double bytes_per_node(const Store& store) const {
    std::size_t tables = 0;
    for (const NpuTrace& trace : traces_)
      tables += sizeof(NpuTrace) + trace.groups.size() * sizeof(GroupId) + trace.peers.size() * sizeof(NpuId) +
                trace.tags.size() * sizeof(std::uint64_t);
    return static_cast<double>(store.bytes() + tables) / static_cast<double>(num_nodes_);
  }

  void report(const Store& store) const {
    fmt::print("{} nodes, {} structures, {} graphs, {:.1f} bytes kept per node\n", num_nodes_, store.num_structures(),
               store.num_graphs(), bytes_per_node(store));
    for (const auto& [kind, entry] : store.notices().entries()) fmt::print("  {} x {}\n", entry.count, entry.text);
  }

  std::vector<NpuTrace> traces_;
  std::size_t num_nodes_ = 0;
};

struct StageCase {
  std::string archive;
  std::string folder;
  std::size_t num_nodes_of_npu_0;
  std::size_t structures;
  /// Of NPU 0, as a plain program that shares no code with the reader counts them.
  std::size_t num_tensors, num_listings, num_without_maker;
  std::uint64_t bytes_of_tensors;
};

class StageTraces : public RealTraces, public testing::WithParamInterface<StageCase> {};

TEST_P(StageTraces, NpusShareEqualStructures) {
  // The 64 traces of a STAGE workload: the number of structures, the nodes and tensors of NPU 0 (as a plain program
  // that shares no code with the reader counts them) and the bytes kept per node must be as expected.
  const StageCase& its = GetParam();
  if (!unpack(its.archive)) GTEST_SKIP() << its.archive << " is not here";
  const auto groups = read_group_file(folder_ / its.folder / "workload.json", 64);
  const Store store = read_all(its.folder + "/workload", 64, groups);
  report(store);
  EXPECT_EQ(traces_.front().graph->num_nodes(), its.num_nodes_of_npu_0);
  EXPECT_EQ(store.num_structures(), its.structures);
  EXPECT_LT(bytes_per_node(store), 40.0);
  const Tensors& tensors = traces_.front().graph->tensors;
  const auto has_maker = tensors.has_maker();
  EXPECT_EQ(tensors.sizes.size(), its.num_tensors);
  EXPECT_EQ(tensors.listings.size(), its.num_listings);
  EXPECT_EQ(std::ranges::count(has_maker, false), static_cast<std::ptrdiff_t>(its.num_without_maker));
  EXPECT_EQ(std::accumulate(tensors.sizes.begin(), tensors.sizes.end(), std::uint64_t{0}), its.bytes_of_tensors);
}

INSTANTIATE_TEST_SUITE_P(
    All, StageTraces,
    testing::Values(StageCase{"stage-gpt_64_tp8sp2dp4_sp", "gpt_64_tp8sp2dp4_sp", 394, 1, 431, 814, 171, 19382448128},
                    StageCase{"stage-moe_64_dp4tp2pp2ep4", "moe_64_dp4tp2pp2ep4", 357, 2, 408, 758, 146, 22318538752},
                    StageCase{"stage-llama-s_64_dp4tp4pp4", "llama-s_64_dp4tp4pp4", 5220, 4, 6379, 11359, 2585,
                              78684094464}),
    [](const auto& its) { return its.param.archive.substr(6, 3); });

TEST_F(RealTraces, DlrmLaunchersAreHostWork) {
  // A step of DLRM that was recorded on 8 GPUs: each trace must have 8 collectives and at least 16 nodes of host
  // work, with recorded durations, and a notice of dependencies on absent nodes.
  if (!unpack("dlrm-8gpu")) GTEST_SKIP() << "dlrm-8gpu is not here";
  const Store store = read_all("dlrm", 8);
  report(store);
  for (const NpuTrace& trace : traces_) {
    EXPECT_EQ(count(trace, NodeKind::collective), 8u);
    EXPECT_GE(count(trace, NodeKind::cpu), 16u);
    EXPECT_FALSE(trace.graph->durations.empty());
  }
  EXPECT_TRUE(store.notices().entries().contains("absent-dependency"));
}

TEST_F(RealTraces, Resnet50OfAllNpusHasOneStructure) {
  // Data-parallel ResNet-50 on 64 NPUs: all traces must share one structure of 54 collectives and 161 compute nodes,
  // ordered by ctrl_deps with a notice.
  if (!unpack("resnet50-dp-64")) GTEST_SKIP() << "resnet50-dp-64 is not here";
  const Store store = read_all("resnet50_DataParallel", 64);
  report(store);
  EXPECT_EQ(store.num_structures(), 1u);
  EXPECT_EQ(count(traces_[3], NodeKind::collective), 54u);
  EXPECT_EQ(count(traces_[3], NodeKind::compute), 161u);
  EXPECT_EQ(traces_[63].first_id, 63u * 215u);
  EXPECT_TRUE(store.notices().entries().contains("dependencies"));
}

TEST_F(RealTraces, PyTorchTracesOfOneNpuAreRead) {
  // A packed trace of schema 1.1.0 and one of schema 1.0.1 whose ctrl_deps make a cycle: both must be read, the
  // second by data_deps with a notice.
  if (!unpack("chakra-pytorch-single")) GTEST_SKIP() << "chakra-pytorch-single is not here";
  Store store = make_store({}, Dependencies::automatic, 1);
  const NpuTrace packed = store.read(folder_ / "pytorch_schema1.1.0.0.et.gz", NpuId(0));
  EXPECT_EQ(packed.graph->num_nodes(), 11347u);
  EXPECT_EQ(count(packed, NodeKind::collective), 14u);
  const NpuTrace cyclic = store.read(folder_ / "resnet_schema1.0.1.0.et", NpuId(0));
  EXPECT_EQ(cyclic.graph->num_nodes(), 3664u);
  for (const auto& [kind, entry] : store.notices().entries()) fmt::print("  {} x {}\n", entry.count, entry.text);
  EXPECT_HAS(store.notices().entries().at("dependencies").text, "data_deps alone");
}

TEST_F(RealTraces, EveryNodeTypeIsReadOrRefusedByName) {
  // Chakra's own files with one node type each: all must be read but those of messages, which lack their size and
  // must be refused.
  if (!unpack("chakra-all-types")) GTEST_SKIP() << "chakra-all-types is not here";
  for (const std::string name : {"ALL_GATHER", "ALL_REDUCE", "ALL_TO_ALL", "BARRIER", "BROADCAST", "REDUCE_SCATTER"}) {
    read_all(name, 4);
    EXPECT_EQ(count(traces_[1], NodeKind::collective), 1u) << name;
  }
  for (const std::string name :
       {"one_comp_node", "two_comp_nodes_dependent", "two_comp_nodes_independent", "one_remote_mem_load_node",
        "one_remote_mem_store_node", "one_metadata_node_all_types"})
    EXPECT_GE(read_all(name, 4).num_structures(), 1u) << name;
  EXPECT_HAS(refusal_of([&] { read_all("one_comm_send_node", 4); }), "there is no comm_size");
  EXPECT_HAS(refusal_of([&] { read_all("one_comm_recv_node", 4); }), "there is no comm_size");
}

TEST_F(RealTraces, OlderSchemasAreRead) {
  // Files of versions 0.0.1 and 0.0.3: the numbers of nodes by kind, a duration and the dimensions of a collective
  // must be as in the files.
  if (!unpack("chakra-legacy-schemas")) GTEST_SKIP() << "chakra-legacy-schemas is not here";
  read_all("legacy_v001", 4);
  EXPECT_EQ(count(traces_[0], NodeKind::collective), 6u);
  EXPECT_EQ(count(traces_[0], NodeKind::compute), 6u);
  EXPECT_EQ(count(traces_[0], NodeKind::send), 1u);
  EXPECT_EQ(count(traces_[0], NodeKind::receive), 1u);
  EXPECT_EQ(count(traces_[0], NodeKind::mem_load), 1u);
  EXPECT_EQ(traces_[0].graph->duration_of(NodeId(0)), Time::from_ns(100'000));
  EXPECT_EQ(traces_[0].graph->nodes[1].detail, 1u) << "involved_dim [1, 0]";
  read_all("legacy_v003", 4);
  EXPECT_EQ(count(traces_[0], NodeKind::collective), 6u);
  EXPECT_EQ(count(traces_[0], NodeKind::compute), 6u);
  EXPECT_EQ(traces_[0].graph->duration_of(NodeId(0)), Time::from_ns(100'000));
}

TEST_F(RealTraces, GroupZeroMayBeDefined) {
  // Traces of 16 NPUs on a torus, whose communicator file defines a group "0" of four members: nodes of group "0"
  // must use it, and names such as "0.0" must be read as whole numbers.
  if (!unpack("torus-multitenant")) GTEST_SKIP() << "torus-multitenant is not here";
  std::filesystem::path folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
    if (entry.path().filename() == "T2D-analytical") folder = entry.path();
  ASSERT_FALSE(folder.empty());
  const auto groups = read_group_file(folder / "inputs" / "comm_group.json", 16);
  Store store = make_store(groups, Dependencies::automatic, 16);
  for (std::uint32_t npu = 0; std::filesystem::exists(folder / "trace" / fmt::format("trace.{}.et", npu)); ++npu)
    traces_.push_back(store.read(folder / "trace" / fmt::format("trace.{}.et", npu), NpuId(npu)));
  ASSERT_FALSE(traces_.empty());
  EXPECT_FALSE(store.notices().entries().contains("group-0"));
  EXPECT_TRUE(store.notices().entries().contains("group-number"));
  for (const Group& group : store.groups()) EXPECT_EQ(group.members.size(), 4u) << group.name;
}

}  // namespace
}  // namespace orrery::trace
