// What nodes and attributes mean, and which nodes are refused.
#include "fixture.hpp"

namespace orrery::trace {
namespace {

class Semantics : public TraceTest {
 protected:
  Node one(const et::Message& node) {
    return store_.read(write(file_of({node}), std::to_string(num_files_++)), NpuId(0)).graph->nodes[0];
  }
  std::string refused(const et::Message& node) {
    return refusal_of([&] { one(node); });
  }
  int num_files_ = 0;
};

TEST_F(Semantics, AComputeNodeHasItsWork) {
  // COMP nodes with and without num_ops and tensor_size: work and bytes must be as given, or 0.
  const Node node = one(et::compute(4, "a", 123, 456));
  EXPECT_EQ(node.kind, NodeKind::compute);
  EXPECT_EQ(node.detail, 123u);
  EXPECT_EQ(node.size, 456u);
  EXPECT_EQ(one(et::Node(4, "a", et::comp)).size, 0u) << "tensor_size may be absent";
  EXPECT_EQ(one(et::compute(4, "a").boolean("is_cpu_op", false)).kind, NodeKind::compute);
}

TEST_F(Semantics, NodesOfTheCpuAreHostWork) {
  // A COMP node and a COMM_COLL node with is_cpu_op: both must be host work of their recorded duration.
  const NpuTrace trace = read({et::compute(4, "a").boolean("is_cpu_op", true).micros(5)});
  EXPECT_EQ(trace.graph->nodes[0].kind, NodeKind::cpu);
  EXPECT_EQ(trace.graph->duration_of(NodeId(0)), Time::from_ns(5000));
  EXPECT_EQ(one(et::Node(1, "launcher", et::comm_coll).int32("is_cpu_op", 1)).kind, NodeKind::cpu);
}

TEST_F(Semantics, SomeNodesCompleteAtOnce) {
  // METADATA, INVALID, and communication and accesses of size 0: all must be instant, without a duration.
  EXPECT_EQ(one(et::Node(1, "m", et::metadata)).kind, NodeKind::instant);
  EXPECT_EQ(one(et::Node(1, "i", et::invalid)).kind, NodeKind::instant);
  EXPECT_EQ(one(et::collective(1, "c", 0, 0)).kind, NodeKind::instant);
  EXPECT_EQ(one(et::send(1, "s", 0, 0)).kind, NodeKind::instant);
  EXPECT_EQ(one(et::receive(1, "r", 0, 0)).kind, NodeKind::instant);
  EXPECT_EQ(one(et::Node(1, "l", et::mem_load).uint64("tensor_size", 0)).kind, NodeKind::instant);
  EXPECT_TRUE(read({et::Node(1, "m", et::metadata).micros(7)}).graph->durations.empty());
}

TEST_F(Semantics, ABarrierNeedsNoSizeAndIsNeverInstant) {
  // Barriers with size 0 and without a size: both must be collectives.
  EXPECT_EQ(one(et::Node(1, "b", et::comm_coll).int64("comm_type", 9)).kind, NodeKind::collective);
  EXPECT_EQ(one(et::collective(1, "b", 9, 0)).kind, NodeKind::collective);
  EXPECT_EQ(one(et::collective(1, "b", 9, 0)).collective, CollectiveKind::barrier);
}

TEST_F(Semantics, CollectiveTypesAreThoseOfChakra) {
  // Collectives of every type: types 0 to 9 must be read, where REDUCE_SCATTER_BLOCK is a reduce-scatter; an unknown,
  // a negative and a missing type must be refused.
  for (const std::int64_t type : {0, 1, 2, 3, 4, 5, 6, 7, 9})
    EXPECT_EQ(static_cast<std::int64_t>(one(et::collective(1, "c", type, 8)).collective), type);
  EXPECT_EQ(one(et::collective(1, "c", 8, 8)).collective, CollectiveKind::reduce_scatter);
  EXPECT_EQ(name(CollectiveKind::reduce_scatter), "reduce-scatter");
  EXPECT_HAS(refused(et::collective(1, "c", 10, 8)), "collective type 10 is not known");
  EXPECT_HAS(refused(et::collective(1, "c", -1, 8)), "comm_type is -1");
  EXPECT_HAS(refused(et::collective(1, "c", 0, 8).bools("involved_dim", {0, 0})),
             "no dimension takes part: involved_dim is false for each");
  EXPECT_HAS(refused(et::Node(1, "c", et::comm_coll).int64("comm_size", 8)),
             "the collective type is missing: there is no comm_type");
}

TEST_F(Semantics, InvolvedDimensionsAreBits) {
  // involved_dim absent, as bools, with all set, and as integers: the bits must name the dimensions, or all of them.
  EXPECT_EQ(one(et::collective(1, "c", 0, 8)).detail, all_dimensions);
  EXPECT_EQ(one(et::collective(1, "c", 0, 8).bools("involved_dim", {1, 0, 1})).detail, 5u);
  EXPECT_EQ(one(et::collective(1, "c", 0, 8).bools("involved_dim", {1, 1})).detail, all_dimensions);
  const auto ints = et::Message().message(10, et::Message().varint(1, 0).varint(1, 1));
  EXPECT_EQ(one(et::collective(1, "c", 0, 8).attribute("involved_dim", ints)).detail, 2u);
}

TEST_F(Semantics, MessagesUseSlotsOfPeersAndTags) {
  // Two sends to NPU 3 and a receive from NPU 5 with different tags: nodes must refer to the slots of a table of two
  // peers and three tags.
  const NpuTrace trace = read({et::send(1, "s", 3, 10, 7), et::receive(2, "r", 5, 20, 8), et::send(3, "t", 3, 30, 9)});
  EXPECT_EQ(trace.graph->nodes[0].kind, NodeKind::send);
  EXPECT_EQ(trace.graph->nodes[1].kind, NodeKind::receive);
  EXPECT_EQ(trace.graph->nodes[2].slot, 0u);
  EXPECT_EQ(trace.graph->nodes[2].size, 30u);
  EXPECT_EQ(trace.peers, npus({3, 5}));
  EXPECT_EQ(trace.tags, (std::vector<std::uint64_t>{7, 8, 9}));
  EXPECT_EQ(trace.graph->nodes[2].detail, 2u);
}

TEST_F(Semantics, TheOwnEndOfAMessageMustBeTheNpu) {
  // Messages that give both ends: they must be read if the own end is NPU 0, for which the trace is read, and refused
  // otherwise.
  EXPECT_EQ(one(et::send(1, "s", 3, 10).int32("comm_src", 0)).kind, NodeKind::send);
  EXPECT_EQ(one(et::receive(1, "r", 3, 10).int32("comm_dst", 0)).kind, NodeKind::receive);
  EXPECT_HAS(refused(et::send(1, "s", 3, 10).int32("comm_src", 2)), "comm_src is 2, but this is the trace of NPU 0");
  EXPECT_HAS(refused(et::receive(1, "r", 3, 10).int32("comm_dst", 2)), "comm_dst is 2, but this is the trace of NPU 0");
}

TEST_F(Semantics, APeerMustBeAnotherNpu) {
  // Messages without a peer, with a peer that is out of range or negative, and with the NPU itself as the peer: each
  // must be refused.
  EXPECT_HAS(refused(et::Node(17, "s", et::comm_send).int64("comm_size", 8)),
             "NPU 0, node 17 's' (byte 9): the peer is missing: there is no comm_dst");
  EXPECT_HAS(refused(et::Node(1, "r", et::comm_recv).int64("comm_size", 8)), "there is no comm_src");
  EXPECT_HAS(refused(et::send(1, "s", 8, 10)), "comm_dst is 8, but the system has 8 NPUs; expected 0 to 7");
  EXPECT_HAS(refused(et::send(1, "s", -1, 10)), "comm_dst is -1, but the system has 8 NPUs");
  EXPECT_HAS(refused(et::send(1, "s", 0, 10)), "the peer is the NPU itself");
}

TEST_F(Semantics, ASizeMustBeAWholeNumber) {
  // Sizes that are missing, negative, fractions or texts: each must be refused where the size has a meaning, and
  // ignored where it has none.
  EXPECT_HAS(refused(et::Node(5, "c", et::comm_coll).int64("comm_type", 0)),
             "node 5 'c' (byte 9): the size is missing: there is no comm_size");
  EXPECT_HAS(refused(et::collective(5, "c", 0, -4)), "comm_size is -4");
  EXPECT_HAS(refused(et::Node(5, "s", et::comm_send).int32("comm_dst", 1)), "there is no comm_size");
  EXPECT_HAS(refused(et::Node(5, "l", et::mem_load)), "there is no tensor_size");
  EXPECT_HAS(refused(et::Node(5, "l", et::mem_store)), "there is no tensor_size");
  const auto half = et::Message().fixed64(3, std::bit_cast<std::uint64_t>(1.5));
  EXPECT_HAS(refused(et::Node(5, "l", et::mem_store).attribute("tensor_size", half)),
             "tensor_size is not a whole number");
  EXPECT_HAS(refused(et::Node(5, "l", et::mem_store).text("tensor_size", "12")), "tensor_size is not a number");
  EXPECT_EQ(one(et::Node(5, "c", et::comp).attribute("num_ops", half)).detail, 1u);
  EXPECT_EQ(one(et::compute(5, "c").int64("comm_type", 77).int64("comm_size", -1)).kind, NodeKind::compute)
      << "noise of other kinds of node is not judged";
}

TEST_F(Semantics, AnAccessMayBeOfAGroup) {
  // Loads and stores with every collective type: a load with all-gather and a store with all-reduce or reduce-scatter
  // must be accesses of a group; any other pair must be refused.
  const auto load = [](std::int64_t type) {
    return et::Node(1, "l", et::mem_load).uint64("tensor_size", 64).int64("comm_type", type);
  };
  const auto alone = one(et::Node(1, "l", et::mem_load).uint64("tensor_size", 64));
  EXPECT_FALSE(alone.is_of_group());
  const auto gather = one(load(2));
  EXPECT_EQ(gather.kind, NodeKind::mem_load);
  EXPECT_TRUE(gather.is_of_group());
  EXPECT_EQ(gather.collective, CollectiveKind::all_gather);
  EXPECT_EQ(gather.detail, all_dimensions);
  const auto some = one(load(2).bools("involved_dim", {0, 1}));
  EXPECT_EQ(some.detail, 2u);
  const auto sum = one(et::Node(1, "s", et::mem_store).uint64("tensor_size", 64).int64("comm_type", 8));
  EXPECT_EQ(sum.collective, CollectiveKind::reduce_scatter);
  EXPECT_HAS(refused(load(7)), "switches carry out no load with reduce-scatter; expected a load with all-gather (2)");
  EXPECT_HAS(refused(load(10)), "collective type 10 is not known");
  EXPECT_HAS(refused(load(-1)), "comm_type is -1");
}

TEST_F(Semantics, UnknownNodeTypesAreRefused) {
  // A node type beyond those of the schema and those that are proposed for it must be refused.
  EXPECT_HAS(refused(et::Node(5, "x", 11)), "node 5 'x' (byte 9): node type 11 is not known");
}

TEST_F(Semantics, AccessesToStorageTakeTheirTimeOrAccessRemoteMemory) {
  // Nodes of the proposed types 8 to 10: with a recorded duration they must be work of the host, with a size alone
  // loads or stores, and with neither instant.
  for (const std::uint32_t type : {8U, 9U, 10U}) {
    const auto recorded = one(et::Node(5, "x", type).micros(7).uint64("tensor_size", 64));
    EXPECT_EQ(recorded.kind, NodeKind::cpu);
    const auto sized = one(et::Node(5, "x", type).uint64("tensor_size", 64));
    EXPECT_EQ(sized.kind, type == 10 ? NodeKind::mem_store : NodeKind::mem_load);
    EXPECT_EQ(sized.size, 64U);
    EXPECT_EQ(one(et::Node(5, "x", type)).kind, NodeKind::instant);
  }
}

TEST_F(Semantics, ADurationMustFitSimulatedTime) {
  // The longest duration that fits a Time, and one that is longer: the first must be read, the second refused.
  EXPECT_HAS(refused(et::compute(5, "x").micros(9'223'372'036'855)), "a duration of 9223372036855 microseconds");
  EXPECT_EQ(read({et::compute(5, "x").micros(9'223'372'036'854)}).graph->durations[0].ps(), 9'223'372'036'854'000'000);
}

TEST_F(Semantics, CustomNodesAreMarkedById) {
  // Options that name nodes with collectives of their own: the graph must have their numbers at collectives, and none
  // at other nodes.
  store_ = Store({.custom_nodes = {{2, 1}, {3, 2}, {5, 1}, {6, 2}, {9, 1}}, .num_npus = 8}, {});
  const NpuTrace trace = read({et::collective(2, "a", 0, 8), et::collective(3, "b", 6, 8), et::collective(4, "c", 0, 8),
                               et::compute(5, "no collective"), et::collective(6, "without bytes", 0, 0)});
  EXPECT_EQ(trace.graph->customs, (std::vector<std::uint32_t>{1, 2, 0, 0, 0}));
  EXPECT_EQ(trace.graph->custom_of(NodeId(1)), 2U);
  const NpuTrace other =
      store_.read(write(file_of({et::collective(2, "a", 0, 8), et::collective(4, "c", 0, 8)}), "other"), NpuId(1));
  const NpuTrace plain =
      store_.read(write(file_of({et::collective(10, "a", 0, 8), et::collective(12, "c", 0, 8)}), "plain"), NpuId(1));
  EXPECT_NE(other.graph, plain.graph);
  EXPECT_TRUE(plain.graph->customs.empty());
}

TEST_F(Semantics, PrioritiesAreKept) {
  // Collectives with positive, zero, absent and negative comm_priority: the graph must have them, with a notice;
  // numbers beyond 32 bits and texts must be refused.
  const NpuTrace trace = read({et::collective(1, "a", 0, 8).int32("comm_priority", 3),
                               et::collective(2, "b", 0, 8).int32("comm_priority", 0), et::send(3, "s", 1, 8),
                               et::collective(4, "c", 0, 8).int32("comm_priority", -1)});
  EXPECT_EQ(trace.graph->priorities, (std::vector<std::int32_t>{3, 0, 0, -1}));
  EXPECT_EQ(store_.notices().entries().at("comm-priority").count, 2u);
  EXPECT_HAS(refused(et::collective(5, "c", 0, 8).int64("comm_priority", std::int64_t{1} << 31)),
             "comm_priority is no whole number of 32 bits");
  EXPECT_HAS(refused(et::collective(5, "c", 0, 8).text("comm_priority", "high")), "comm_priority is no whole number");
}

TEST_F(Semantics, StreamsAreNumberedInOrderOfUse) {
  // Nodes that name streams, read by count and by the streams of the trace: streams must be numbered as they come, so
  // that traces that differ in the numbers share a structure.
  const auto file = [](std::int64_t first, std::int64_t second) {
    return file_of({et::compute(1, "a").int64("stream", first), et::collective(2, "b", 0, 8).int64("stream", second),
                    et::send(3, "c", 1, 8).int64("stream", first), et::receive(4, "d", 1, 8).int64("stream", 9),
                    et::compute(5, "e").boolean("is_cpu_op", true).int64("stream", 9), et::compute(6, "f")});
  };
  const auto streams = [](const NpuTrace& trace) {
    std::vector<std::uint32_t> result{trace.graph->num_streams};
    for (std::uint32_t node = 0; node < trace.graph->num_nodes(); ++node)
      result.push_back(trace.graph->nodes[node].stream);
    return result;
  };
  EXPECT_EQ(streams(store_.read(write(file(7, 3), "counted"), NpuId(0))), (std::vector<std::uint32_t>(7, 0)));
  Store store({.streams = Streams::of_trace, .num_npus = 4}, {});
  const NpuTrace trace = store.read(write(file(7, 3), "streams"), NpuId(0));
  EXPECT_EQ(streams(trace), (std::vector<std::uint32_t>{2, 1, 2, 1, 0, 0, 0}));
  EXPECT_EQ(store.notices().entries().at("stream").count, 1u);
  EXPECT_EQ(streams(store.read(write(file(-1, 3), "negative"), NpuId(0))),
            (std::vector<std::uint32_t>{1, 0, 1, 0, 0, 0, 0}))
      << "a negative number names no stream";
  EXPECT_EQ(store.read(write(file(20, 7), "others"), NpuId(0)).graph, trace.graph)
      << "numbers of streams do not tell structures apart";
  EXPECT_NE(store.read(write(file(7, 7), "one"), NpuId(0)).graph, trace.graph);
}

TEST_F(Semantics, NodesAreNumberedByTheirIds) {
  // Nodes with ids 30, 10 and 20 in this order: NodeIds must follow the ids, also in dependencies and places.
  const NpuTrace trace = read({et::compute(30, "c", 3), et::compute(10, "a", 1), et::compute(20, "b", 2).data({30})});
  EXPECT_EQ(trace.first_id, 10u);
  EXPECT_EQ(trace.graph->nodes[0].detail, 1u);
  EXPECT_EQ(trace.graph->nodes[1].detail, 2u);
  EXPECT_EQ(trace.id_of(NodeId(2)), 30u);
  EXPECT_EQ(successors(trace, 2), std::vector<std::uint32_t>{1});
  const Place place = store_.place(trace, NpuId(0), NodeId(1));
  EXPECT_EQ(place.node, 20u);
  EXPECT_EQ(place.node_name, "b");
  EXPECT_EQ(place.file, (folder_ / "t.0.et").string());
}

TEST_F(Semantics, AnIdMustBeUnique) {
  // Two of three nodes have the same id: the message must give both.
  EXPECT_HAS(refusal({et::compute(3, "a"), et::compute(4, "b"), et::compute(3, "c")}),
             "node 3 'c' (byte 87): the id is used twice; the other is 'a' at byte 9");
}

}  // namespace
}  // namespace orrery::trace
