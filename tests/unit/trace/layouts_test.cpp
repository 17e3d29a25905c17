// Framing, gzip and the layouts of a file.
#include <zlib.h>

#include "fixture.hpp"

namespace orrery::trace {
namespace {

class Layouts : public TraceTest {};

std::string gzip(const std::filesystem::path& path, const std::string& bytes) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST_F(Layouts, TheCurrentLayoutWithMetadata) {
  // Metadata and two nodes with ids 7 and 9: the graph must have both, with their ids, names and dependency.
  const NpuTrace trace = read({et::compute(7, "a"), et::compute(9, "b").data({7})});
  ASSERT_EQ(trace.graph->num_nodes(), 2u);
  EXPECT_EQ(trace.id_of(NodeId(1)), 9u);
  EXPECT_EQ(store_.name_of(trace, NodeId(1)), "b");
  EXPECT_EQ(successors(trace, 0), std::vector<std::uint32_t>{1});
}

TEST_F(Layouts, TheCurrentLayoutWithoutMetadata) {
  // Two nodes and no metadata: both must be read.
  const NpuTrace trace = read_bytes(et::File().add(et::compute(0, "a")).add(et::compute(1, "b").data({0})).text());
  EXPECT_EQ(trace.graph->num_nodes(), 2u);
}

TEST_F(Layouts, MetadataMayHaveOnlyAttributesOrNothing) {
  // A first message with attributes only, and an empty one: each must be taken as metadata, not as a node.
  et::Message metadata;
  metadata.message(2, et::Message().bytes(1, "schema").bytes(29, "1.0.1"));
  EXPECT_EQ(read_bytes(et::File().add(metadata).add(et::compute(0, "a")).text()).graph->num_nodes(), 1u);
  EXPECT_EQ(store_.read(write(et::File().add(et::Message()), "empty.et"), NpuId(0)).graph->num_nodes(), 0u);
}

TEST_F(Layouts, ATraceWithoutNodesIsAnNpuWithNothingToDo) {
  // Metadata and no node: the graph must be empty.
  const NpuTrace trace = read({});
  EXPECT_EQ(trace.graph->num_nodes(), 0u);
  EXPECT_TRUE(trace.graph->successors.empty());
}

TEST_F(Layouts, GzipDataGiveTheSameGraph) {
  // The same trace plain, packed, and packed as two gzip members: all must give one graph. Packed data that are cut
  // off or damaged must be refused.
  const std::string bytes = file_of({et::compute(0, "a"), et::compute(1, "b").data({0})}).text();
  const auto plain = store_.read(write(bytes, "plain.et"), NpuId(0));
  const std::string packed = gzip(folder_ / "x.gz", bytes);
  EXPECT_EQ(store_.read(write(packed, "packed.et"), NpuId(0)).graph, plain.graph);
  EXPECT_EQ(store_
                .read(write(gzip(folder_ / "y.gz", bytes.substr(0, 9)) + gzip(folder_ / "z.gz", bytes.substr(9)),
                            "two-members.et"),
                      NpuId(0))
                .graph,
            plain.graph);
  EXPECT_HAS(refusal_of_bytes(packed.substr(0, packed.size() - 12)), "the gzip data is truncated");
  std::string damaged = packed;
  damaged[packed.size() - 6] = static_cast<char>(damaged[packed.size() - 6] ^ 0x55);
  EXPECT_HAS(refusal_of([&] { store_.read(write(damaged, "damaged.et"), NpuId(0)); }), "the gzip data is damaged");
}

TEST_F(Layouts, UnknownFieldsAreSkipped) {
  // A compute node with fields of every wire type that are not of the schema: it must be read as without them.
  et::Node node = et::compute(3, "a");
  node.varint(99, 5).bytes(21, "text").fixed64(100, 7).fixed32(101, 7).varint(12, 1);
  EXPECT_EQ(read({node}).graph->nodes[0].kind, NodeKind::compute);
  EXPECT_EQ(read_bytes(et::File().add(node).text()).graph->nodes[0].detail, 1000u);
}

TEST_F(Layouts, DependenciesMayBePackedOrNot) {
  // The same dependencies as a packed list and as single fields: graph and labels must be the same.
  et::Node loose = et::compute(2, "c");
  loose.varint(5, 0).varint(5, 1);
  const NpuTrace a = store_.read(write(file_of({et::compute(0, "a"), et::compute(1, "b"), loose}), "a"), NpuId(0));
  const NpuTrace b = store_.read(
      write(file_of({et::compute(0, "a"), et::compute(1, "b"), et::compute(2, "c").data({0, 1})}), "b"), NpuId(0));
  EXPECT_EQ(a.graph, b.graph);
  EXPECT_EQ(a.labels, b.labels);
}

TEST_F(Layouts, AnAttributeMayHaveAnyNumericType) {
  // comm_size as each of the twelve numeric types, is_cpu_op as a double: every value must be read.
  const std::vector<et::Message> values = {
      et::Message().fixed64(3, std::bit_cast<std::uint64_t>(4096.0)),
      et::Message().fixed32(5, std::bit_cast<std::uint32_t>(4096.0f)),
      et::Message().varint(7, 4096),
      et::Message().varint(9, 4096),
      et::Message().varint(11, 4096),
      et::Message().varint(13, 4096),
      et::Message().zigzag(15, 4096),
      et::Message().zigzag(17, 4096),
      et::Message().fixed32(19, 4096),
      et::Message().fixed64(21, 4096),
      et::Message().fixed32(23, 4096),
      et::Message().fixed64(25, 4096),
  };
  for (std::size_t at = 0; at < values.size(); ++at) {
    et::Node node(1, "x", et::comm_coll);
    node.int64("comm_type", 0).attribute("comm_size", values[at]);
    const auto path = write(file_of({node}), std::to_string(at));
    EXPECT_EQ(store_.read(path, NpuId(0)).graph->nodes[0].size, 4096u) << at;
  }
  et::Node cpu(1, "x", et::comp);
  const NpuTrace trace =
      read({cpu.attribute("is_cpu_op", et::Message().fixed64(3, std::bit_cast<std::uint64_t>(1.0)))});
  EXPECT_EQ(trace.graph->nodes[0].kind, NodeKind::cpu);
}

TEST_F(Layouts, AnAttributeMayHaveItsValueBeforeItsName) {
  // An attribute whose value stands before its name: the value must be read.
  et::Node node(1, "x", et::comm_coll);
  node.int64("comm_type", 0).message(10, et::Message().varint(9, 77).bytes(1, "comm_size"));
  EXPECT_EQ(read({node}).graph->nodes[0].size, 77u);
}

/// A node of 0.0.1: everything is a field.
et::Message v001(std::uint64_t id, std::uint64_t type) {
  return et::Message().varint(1, id).bytes(2, "n").varint(3, type);
}

TEST_F(Layouts, Version001IsRead) {
  // A file of version 0.0.1 with a node of every type: kinds, sizes, durations, peers, tags and dependencies must be
  // as the fields say.
  et::File file;
  file.add(v001(0, 3).varint(6, 512).varint(7, 20).varint(12, 9000));
  file.add(v001(1, 6).varint(4, 0).varint(13, 2).varint(14, 0).varint(14, 1).varint(15, 0).varint(18, 64));
  file.add(v001(2, 4).varint(4, 1).varint(16, 0).varint(17, 5).varint(18, 128).varint(19, 3));
  file.add(v001(3, 5).varint(4, 1).varint(16, 6).varint(17, 0).varint(18, 128).varint(19, 4));
  file.add(v001(4, 1).varint(4, 2).varint(4, 3).varint(6, 32));
  file.add(v001(5, 2).varint(6, 33));
  file.add(v001(6, 0));
  const NpuTrace trace = read_bytes(file.text());
  const auto& nodes = trace.graph->nodes;
  EXPECT_EQ(nodes[0].kind, NodeKind::compute);
  EXPECT_EQ(nodes[0].size, 512u);
  EXPECT_EQ(nodes[0].detail, 9000u);
  EXPECT_EQ(trace.graph->duration_of(NodeId(0)), Time::from_ns(20'000));
  EXPECT_EQ(nodes[1].collective, CollectiveKind::all_to_all);
  EXPECT_EQ(nodes[1].detail, 2u);
  EXPECT_EQ(nodes[2].kind, NodeKind::send);
  EXPECT_EQ(nodes[3].kind, NodeKind::receive);
  EXPECT_EQ(trace.peers, npus({5, 6}));
  EXPECT_EQ(trace.tags, (std::vector<std::uint64_t>{3, 4}));
  EXPECT_EQ(nodes[4].kind, NodeKind::mem_load);
  EXPECT_EQ(nodes[4].num_dependencies, 2u);
  EXPECT_EQ(nodes[5].kind, NodeKind::mem_store);
  EXPECT_EQ(nodes[6].kind, NodeKind::instant);
}

TEST_F(Layouts, Version001HasGroupsByNumberAndNoBroadcast) {
  // Collectives of version 0.0.1 in group 2 and of the types 0, 4 and 5: group 2 is looked up in the communicator
  // file, type 4 is a reduce-scatter, and types 0 and 5 must be refused.
  store_ = make_store({{"2", npus({0, 3})}});
  const auto with = [](std::uint64_t kind, std::uint64_t group) {
    return et::File().add(v001(1, 6).varint(13, kind).varint(15, group).varint(18, 64)).text();
  };
  const NpuTrace trace = store_.read(write(with(4, 2), "a"), NpuId(0));
  EXPECT_EQ(store_.groups()[trace.groups[0].index()].members, npus({0, 3}));
  EXPECT_EQ(trace.graph->nodes[0].collective, CollectiveKind::reduce_scatter);
  EXPECT_HAS(refusal_of_bytes(with(0, 0)), "collective type 0 is not known");
  EXPECT_HAS(refusal_of([&] { store_.read(write(with(5, 0), "b"), NpuId(0)); }), "collective type 5 is not known");
}

et::Message v003_attribute(std::string_view name, std::uint64_t type, const et::Message& value) {
  return et::Message().bytes(1, name).varint(2, type).raw(value.text());
}

et::File v003_file(std::string_view version, std::uint64_t comp, std::uint64_t coll) {
  et::File file;
  file.add(et::Message().message(1, v003_attribute("schema", 4, et::Message().bytes(8, version))));
  file.add(et::Message().varint(1, 0).bytes(2, "c").varint(3, comp).message(
      11, v003_attribute("runtime", 3, et::Message().varint(7, 30))));
  et::Message node = et::Message().varint(1, 1).bytes(2, "x").varint(3, coll).varint(4, 0).bytes(5, "['t']");
  node.message(11, v003_attribute("comm_type", 3, et::Message().varint(7, 4)));
  node.message(11, v003_attribute("comm_size", 2, et::Message().varint(6, 640)));
  node.message(11, v003_attribute("involved_dim", 5, et::Message().varint(9, 1).varint(9, 0)));
  return file.add(node);
}

TEST_F(Layouts, Version003And002DifferInTheNumbersOfNodeTypes) {
  // The same two nodes as versions 0.0.3 and 0.0.2 number their types: both files must give the same graph.
  for (const auto& bytes : {v003_file("0.0.3-sample", 4, 7).text(), v003_file("0.0.2", 3, 6).text()}) {
    const NpuTrace trace = store_.read(write(bytes, std::to_string(bytes.size())), NpuId(0));
    EXPECT_EQ(trace.graph->nodes[0].kind, NodeKind::compute);
    EXPECT_EQ(trace.graph->duration_of(NodeId(0)), Time::from_ns(30'000));
    EXPECT_EQ(trace.graph->nodes[1].kind, NodeKind::collective);
    EXPECT_EQ(trace.graph->nodes[1].collective, CollectiveKind::broadcast);
    EXPECT_EQ(trace.graph->nodes[1].size, 640u);
    EXPECT_EQ(trace.graph->nodes[1].detail, 1u);
    EXPECT_EQ(successors(trace, 0), std::vector<std::uint32_t>{1});
  }
}

TEST_F(Layouts, ATruncatedFileIsRefusedWithItsPlace) {
  // Files that end within a message or within the length of one: the message must say where and how much is there.
  const std::string bytes = file_of({et::compute(1, "a"), et::compute(2, "b")}).text();
  EXPECT_HAS(refusal_of_bytes(bytes.substr(0, bytes.size() - 1)), "the file is truncated: a message of");
  EXPECT_HAS(refusal_of([&] { store_.read(write(bytes + "\x85", "length"), NpuId(0)); }),
             "the file is truncated: it ends within the length of a message");
  EXPECT_HAS(refusal_of([&] { store_.read(write("\x7f\x08\x01\x12", "c.et"), NpuId(0)); }),
             "c.et: NPU 0 (byte 1): the file is truncated: a message of 127 bytes is cut off after 3");
}

TEST_F(Layouts, AMessageThatIsNoNodeIsRefusedWithItsPlace) {
  // Metadata followed by what is not a node: a message whose id is a text, bytes that are not a length, and a file of
  // zero bytes. Each must be refused with its place.
  const std::string bytes = et::File().metadata().add(et::Message().bytes(1, "id as a text").varint(3, 4)).text();
  EXPECT_HAS(refusal_of([&] { store_.read(write(bytes, "b"), NpuId(0)); }),
             "message 1 (at byte 9) is not a Chakra node");
  EXPECT_HAS(
      refusal_of([&] { store_.read(write(et::File().metadata().text() + std::string(40, '\xff'), "a"), NpuId(0)); }),
      "NPU 0 (byte 13): this is not the length of a message; expected length-delimited Chakra messages");
  EXPECT_HAS(refusal_of([&] { store_.read(write(std::string(5, '\0'), "d"), NpuId(0)); }),
             "the file holds zero bytes only; expected a Chakra execution trace");
}

TEST_F(Layouts, WhatIsNotAFileIsRefused) {
  // A path without a file, a folder and a device: each must be refused by what it is.
  EXPECT_HAS(refusal_of([&] { store_.read(folder_ / "none.et", NpuId(3)); }), "none.et: NPU 3: there is no such file");
  EXPECT_HAS(refusal_of([&] { store_.read(folder_, NpuId(3)); }), "this is a directory");
  EXPECT_HAS(refusal_of([&] { store_.read("/dev/zero", NpuId(3)); }), "this is not a regular file");
  EXPECT_HAS(refusal_of_bytes(""), "the file is empty");
}

}  // namespace
}  // namespace orrery::trace
