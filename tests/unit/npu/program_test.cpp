#include "orrery/npu/program.hpp"

#include <gtest/gtest.h>

#include "graph_builder.hpp"

namespace orrery::npu {
namespace {

using orrery::test_support::GraphBuilder;
using trace::NodeKind;

constexpr communicator::DimensionsInUse both_dimensions{0b11};

Program make(GraphBuilder& graph, const Options& options = {}) {
  return make_program(graph.build(), options, both_dimensions);
}

// Compute and CPU nodes have recorded durations. The program takes them over, 0 becomes 1 ns, and instant nodes and
// messages get no duration.
TEST(Program, ComputeTakesItsRecordedDuration) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 7, {});
  graph.timed(NodeKind::cpu, 3, {0});
  graph.timed(NodeKind::compute, 0, {1});  // 0 becomes 1 ns
  graph.timed(NodeKind::instant, 9, {2});
  graph.timed(NodeKind::send, 9, {2});  // as long as its message
  EXPECT_EQ(make(graph).durations,
            (std::vector{Time::from_ns(7), Time::from_ns(3), Time::from_ns(1), Time::zero(), Time::zero()}));
}

// A trace is replayed. Communication nodes take their recorded durations too, and instant nodes take none.
TEST(Program, ReplayTakesRecordedDurationsOfCommunicationToo) {
  GraphBuilder graph;
  graph.timed(NodeKind::send, 9, {});
  graph.timed(NodeKind::collective, 5, {0});
  graph.timed(NodeKind::receive, 0, {1});
  graph.timed(NodeKind::instant, 4, {1});
  Options options;
  options.replay_only = true;
  EXPECT_EQ(make(graph, options).durations,
            (std::vector{Time::from_ns(9), Time::from_ns(5), Time::from_ns(1), Time::zero()}));
}

// A roofline gives the time of compute nodes. CPU nodes keep their recorded durations, and a compute node without
// operations and bytes is counted as unknown.
TEST(Program, RooflineIsForComputeAlone) {
  GraphBuilder graph;
  graph.timed(NodeKind::compute, 7, {});
  graph.node(0).detail = 1000;  // FLOPs, at 1 TFLOPS
  graph.node(0).size = 1;
  graph.timed(NodeKind::cpu, 3, {0});
  graph.timed(NodeKind::compute, 7, {0});  // neither operations nor bytes
  Options options;
  options.compute = {compute::ModelName("roofline"), 1e12, Bandwidth::from_bytes_per_ns(100), 0};
  const auto program = make(graph, options);
  EXPECT_EQ(program.durations, (std::vector{Time::from_ns(1), Time::from_ns(3), Time::zero()}));
  EXPECT_EQ(program.num_unknown_compute, 1U);
}

// Three collectives of two groups take part in all dimensions. The program has one use for each group.
TEST(Program, UsesAreTheGroupSlotsWhereAllDimensionsTakePart) {
  GraphBuilder graph;
  graph.collective(0, trace::all_dimensions, {});
  graph.collective(1, trace::all_dimensions, {0});
  graph.collective(0, both_dimensions.bits, {1});  // all there are
  const auto program = make(graph);
  EXPECT_EQ(program.uses,
            (std::vector<communicator::GroupUse>{{0, trace::all_dimensions}, {1, trace::all_dimensions}}));
  EXPECT_TRUE(program.use_of.empty());
  EXPECT_EQ(program.use_of_node(NodeId(2)), 0U);
}

// Three collectives are of one group, and one of them names a custom collective. The program has two uses.
TEST(Program, UsesTellCustomCollectivesApart) {
  GraphBuilder graph;
  graph.collective(0, trace::all_dimensions, {});
  graph.collective(0, trace::all_dimensions, {0});
  graph.collective(0, trace::all_dimensions, {1});
  auto built = *graph.build();
  built.customs = {0, 2, 0};
  const auto program = make_program(std::make_shared<const trace::Graph>(built), {}, both_dimensions);
  EXPECT_EQ(program.uses,
            (std::vector<communicator::GroupUse>{{0, trace::all_dimensions, 0}, {0, trace::all_dimensions, 2}}));
  EXPECT_EQ(program.use_of, (std::vector<std::uint32_t>{0, 1, 0}));
}

// Collectives of one group take part in different dimensions. The program has one use for each set of dimensions that
// have more than one NPU.
TEST(Program, UsesTellDimensionsApart) {
  GraphBuilder graph;
  graph.collective(0, 0b01, {});
  graph.collective(0, 0b10, {0});
  graph.collective(0, 0b101, {1});  // dimension 2 has one NPU: the same as the first
  graph.timed(NodeKind::compute, 1, {2});
  graph.collective(0, trace::all_dimensions, {3});
  const auto program = make(graph);
  EXPECT_EQ(program.uses, (std::vector<communicator::GroupUse>{{0, 0b01}, {0, 0b10}, {0, trace::all_dimensions}}));
  EXPECT_EQ(program.use_of_node(NodeId(0)), 0U);
  EXPECT_EQ(program.use_of_node(NodeId(1)), 1U);
  EXPECT_EQ(program.use_of_node(NodeId(2)), 0U);
  EXPECT_EQ(program.use_of_node(NodeId(4)), 2U);
}

}  // namespace
}  // namespace orrery::npu
