// Chakra execution traces as JSON: both dialects, and what is refused.
#include "fixture.hpp"

namespace orrery::trace {
namespace {

class ChakraJson : public TraceTest {
 protected:
  NpuTrace read_text(const std::string& text) { return store_.read(write(text, "t.json"), NpuId(0)); }
  std::string refusal_of_text(const std::string& text) {
    return refusal_of([&] { read_text(text); });
  }
  std::string graph_of(const std::string& nodes) { return "{\"workload_graph\": [" + nodes + "]}"; }
};

// The feeder's dialect: dependencies of both spellings, one on a node that is not there, a launcher on the host, and a
// kernel of which only the time is known.
TEST_F(ChakraJson, TheFeedersGraphIsRead) {
  const NpuTrace trace = read_text(graph_of(
      R"({"Id": 7, "Name": "a", "NodeType": 4, "ctrlDeps": [3], "data_deps": [], "runtime": 5, "is_cpu_op": true},
         {"Id": 9, "Name": "launch", "NodeType": 7, "ctrl_deps": [7], "runtime": 2, "is_cpu_op": true},
         {"Id": 8, "Name": "ncclKernel", "NodeType": 7, "data_deps": [9, 7], "runtime": 3, "is_cpu_op": false})"));
  EXPECT_EQ(store_.format(trace), "chakra-json");
  ASSERT_EQ(trace.graph->num_nodes(), 3U);
  EXPECT_EQ(trace.graph->nodes[0].kind, NodeKind::cpu);
  EXPECT_EQ(trace.graph->nodes[1].kind, NodeKind::compute);
  EXPECT_EQ(trace.graph->nodes[2].kind, NodeKind::cpu);
  EXPECT_EQ(trace.graph->duration_of(NodeId(1)), Time::from_ns(3000));
  EXPECT_EQ(successors(trace, 0), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(successors(trace, 2), std::vector<std::uint32_t>{1});
  EXPECT_EQ(store_.notices().entries().at("absent-dependency").count, 1U);
  EXPECT_EQ(store_.notices().entries().at("collective-without-size").count, 1U);
}

// The jsonizer's dialect: metadata and nodes one after the other, integers of 64 bits as texts, types as words.
TEST_F(ChakraJson, WhatTheJsonizerPrintsIsRead) {
  const NpuTrace trace = read_text(
      R"({"version": "0.0.4"}{"id": "1", "name": "c", "type": "COMP_NODE", "durationMicros": "4",
          "attr": [{"name": "is_cpu_op", "boolVal": false}, {"name": "num_ops", "int64Val": "12"}]}
         {"id": "2", "name": "r", "type": "COMM_COLL_NODE", "dataDeps": ["1"], "attr": [
          {"name": "comm_type", "int64Val": "0"}, {"name": "comm_size", "uint64Val": "1024"},
          {"name": "involved_dim", "boolList": {"values": [true, true]}}]}
         {"id": "3", "name": "s", "type": "COMM_SEND_NODE", "ctrlDeps": ["2"], "attr": [
          {"name": "comm_dst", "uint32Val": 5}, {"name": "comm_size", "int64Val": "8"}]})");
  ASSERT_EQ(trace.graph->num_nodes(), 3U);
  EXPECT_EQ(trace.graph->nodes[0].detail, 12U);
  EXPECT_EQ(trace.graph->nodes[1].kind, NodeKind::collective);
  EXPECT_EQ(trace.graph->nodes[1].size, 1024U);
  EXPECT_EQ(trace.peers, npus({5}));
  EXPECT_EQ(successors(trace, 1), std::vector<std::uint32_t>{2});
}

// Metadata that name the precision of the arithmetic, with the names of both spellings of protocol buffers' JSON.
TEST_F(ChakraJson, MetadataNameThePrecision) {
  const auto precision_of = [&](const std::string& attributes) {
    store_ = make_store();
    read_text(R"({"version": "0.0.4", "attr": [)" + attributes + R"(]}{"id": "1", "type": "COMP_NODE", "attr": []})");
    return store_.precision();
  };
  EXPECT_EQ(precision_of(R"({"name": "precision", "stringVal": "fp8"})"), "fp8");
  EXPECT_EQ(precision_of(R"({"name": "schema", "string_val": "a"}, {"name": "precision", "string_val": "fp32"})"),
            "fp32");
  EXPECT_EQ(precision_of(R"({"name": "schema", "stringVal": "fp8"})"), "");
}

// A list of nodes, of which the first defines a process group and the second names it. The node must get the members.
TEST_F(ChakraJson, ProcessGroupsOfATraceCount) {
  const NpuTrace trace = read_text(
      R"([{"id": "1", "name": "## process_group:init ##", "type": "METADATA_NODE",
           "inputs": {"values": "[{\"pg_name\": \"g\", \"ranks\": [0, 3]}]"}},
          {"id": "2", "type": "COMM_COLL_NODE", "attr": [{"name": "comm_type", "int64Val": "2"},
           {"name": "comm_size", "int64Val": "8"}, {"name": "pg_name", "stringVal": "g"}]}])");
  ASSERT_EQ(trace.groups.size(), 1U);
  EXPECT_EQ(store_.groups()[trace.groups[0].index()], (Group{"g", npus({0, 3})}));
}

// Graphs with one fault each: a member of a wrong type, a node that is no object, a file that is cut off, an unknown
// type. The message must say what is wrong, and where.
TEST_F(ChakraJson, FaultsHaveTheirByte) {
  EXPECT_HAS(refusal_of_text(graph_of(R"({"Id": -1})")), "(byte 20): 'id' of a node is no whole number");
  EXPECT_HAS(refusal_of_text(graph_of("5")), "there is a value that is no object; expected a node");
  EXPECT_HAS(refusal_of_text(graph_of(R"({"Id": 1, "Name": 3})")), "the name of a node is no text");
  EXPECT_HAS(refusal_of_text(graph_of(R"({"Id": 1, "data_deps": 3})")), "'data_deps' of a node is no list");
  EXPECT_HAS(refusal_of_text(graph_of(R"({"Id": 1, "data_deps": ["x"]})")), "no whole number");
  EXPECT_HAS(refusal_of_text(graph_of(R"({"Id": 1, "NodeType": "DANCE_NODE"})")), "the type of a node is 'DANCE_NODE'");
  EXPECT_HAS(refusal_of_text(graph_of(R"({"Id": 1, "attr": [{"int64Val": "4"}]})")), "an attribute of a node has no");
  EXPECT_HAS(refusal_of_text(R"({"workload_graph": [{"Id": 1)"), "this is not JSON");
  EXPECT_HAS(refusal_of_text(graph_of(R"({"Id": 1, "NodeType": 12})")), "node type 12 is not known");
}

}  // namespace
}  // namespace orrery::trace
