#include "orrery/partition/communication_graph.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "mpi_world.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/trace/store.hpp"

#include "all_rules.hpp"
#include "dimension_of.hpp"

namespace orrery::partition {
namespace {

using trace::CollectiveKind;

constexpr std::uint32_t grid_size = 6;
constexpr communicator::DimensionsInUse both_dimensions{3};

/// A 3 x 2 grid. Each NPU computes, sums a kilobyte with all NPUs twice, gathers in a pair, sends two messages to the
/// next NPU and receives two from the one before.
trace::Structure structure() {
  trace::Builder builder;
  const NodeId work = builder.compute("work", 10, Bytes(10), {});
  const NodeId after[] = {work};
  builder.collective("sum", CollectiveKind::all_reduce, Bytes(1024), 0, after);
  builder.collective("gather", CollectiveKind::all_gather, Bytes(100), 1, after);
  builder.collective("sum again", CollectiveKind::all_reduce, Bytes(1024), 0, after);
  builder.send("first", 0, 1, Bytes(10), after);
  builder.send("second", 0, 2, Bytes(20), after);
  builder.receive("first", 1, 1, Bytes(10), after);
  builder.receive("second", 1, 2, Bytes(20), after);
  return builder.finish();
}

/// The traces of NPUs i, i + ranks, ... for rank i.
struct Traces {
  trace::Store store{{.num_npus = grid_size}, {}};
  std::vector<NpuId> npus;
  std::vector<trace::NpuTrace> traces;

  Traces() {
    const trace::NpuTrace shared = store.keep(structure(), "made");
    for (auto i = static_cast<std::uint32_t>(test::me()); i < grid_size;
         i += static_cast<std::uint32_t>(test::world().size())) {
      npus.emplace_back(i);
      auto& trace = traces.emplace_back(shared);
      trace.groups = {store.keep_group("", {}), store.keep_group("pair", {NpuId(i / 2 * 2), NpuId(i / 2 * 2 + 1)})};
      trace.peers = {NpuId((i + 1) % grid_size), NpuId((i + grid_size - 1) % grid_size)};
    }
  }
  CommunicationGraph graph(bool communicates = true) const {
    const auto delays = test_support::delays(
        {topology::dimension_of(topology::Shape("Ring"), 3), topology::dimension_of(topology::Shape("Ring"), 2)});
    const collective::Engine engine(delays, {});
    return communication_graph({npus, traces, store.groups()}, delays.topology(), engine, communicates, test::world());
  }
};

// One structure has messages, collectives and receives. Its summary adds up messages by peer and collectives by group,
// and leaves receives out.
TEST(TraceSummary, AddsUpByPeerAndGroup) {
  const auto summary = summarise(structure().graph, both_dimensions);
  EXPECT_EQ(summary.nodes, 8U);
  ASSERT_EQ(summary.to_peer.size(), 2U);
  EXPECT_EQ(summary.to_peer[0].bytes, 30U);
  EXPECT_EQ(summary.to_peer[0].count, 2U);
  EXPECT_EQ(summary.to_peer[1].count, 0U);
  ASSERT_EQ(summary.uses.size(), 2U);
  EXPECT_EQ(summary.in_use[0].bytes, 2048U);
  EXPECT_EQ(summary.in_use[0].count, 2U);
  EXPECT_EQ(summary.in_use[1].bytes, 100U);
}

// Any number of ranks read the traces of six NPUs. Every rank gets the whole graph.
TEST(CommunicationGraph, IsWholeOnEveryRank) {
  const auto graph = Traces().graph();
  EXPECT_EQ(graph.loads, std::vector<std::uint64_t>(grid_size, 8));
  ASSERT_EQ(graph.flows.size(), grid_size);
  for (std::uint32_t i = 0; i < grid_size; ++i) {
    EXPECT_EQ(graph.flows[i].from, i);
    EXPECT_EQ(graph.flows[i].to, (i + 1) % grid_size);
    EXPECT_EQ(graph.flows[i].bytes, 30U);
    EXPECT_EQ(graph.flows[i].messages, 2U);
  }
  ASSERT_EQ(graph.groups.size(), 4U);
  EXPECT_EQ(graph.groups[0].members.size(), grid_size);
  EXPECT_EQ(graph.groups[0].bytes, 2048U * grid_size);
  EXPECT_EQ(graph.groups[0].collectives, 2U * grid_size);
  for (std::uint32_t pair = 0; pair < 3; ++pair) {
    EXPECT_EQ(graph.groups[1 + pair].members, (std::vector<NpuId>{NpuId(2 * pair), NpuId(2 * pair + 1)}));
    EXPECT_EQ(graph.groups[1 + pair].bytes, 200U);
  }
}

// A replay communicates nothing. The graph has loads only.
TEST(CommunicationGraph, HasLoadsOnlyInAReplay) {
  const auto graph = Traces().graph(false);
  EXPECT_EQ(graph.loads, std::vector<std::uint64_t>(grid_size, 8));
  EXPECT_TRUE(graph.flows.empty());
  EXPECT_TRUE(graph.groups.empty());
}

}  // namespace
}  // namespace orrery::partition
