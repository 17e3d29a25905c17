// Tensors of the local memory and the nodes that list them.
#include "fixture.hpp"
#include "orrery/trace/builder.hpp"
#include "orrery/trace/writer.hpp"

namespace orrery::trace {
namespace {

/// "needs a, makes b, updates c": what a node lists, in order.
std::string listed(const Store& store, const NpuTrace& trace, std::uint32_t node) {
  std::string text;
  for (const Listing listing : trace.graph->tensors.of(NodeId(node))) {
    text += listing.needs ? (listing.makes ? "updates " : "needs ") : "makes ";
    text += std::string(store.name(trace.labels->tensors[listing.tensor])) + ", ";
  }
  return text.substr(0, text.empty() ? 0 : text.size() - 2);
}

class TensorsTest : public TraceTest {
 protected:
  NpuTrace keep(Builder& builder) { return store_.keep(builder.finish(), "made"); }
};

TEST_F(TensorsTest, AreInTheOrderOfTheirFirstUse) {
  // A builder with three nodes and four tensors, one of which no node lists: tensors must be numbered by their first
  // use, and a node must list each once.
  Builder builder;
  const NodeId first = builder.compute("first", 1, Bytes(1), {});
  const NodeId second = builder.compute("second", 1, Bytes(1), {{first}});
  const NodeId third = builder.compute("third", 1, Bytes(1), {{second}});
  const auto unused = builder.tensor("unused", Bytes(99));
  const auto y = builder.tensor("y", Bytes(7)), w = builder.tensor("w", Bytes(5)), x = builder.tensor("x", Bytes(3));
  EXPECT_EQ(builder.tensor("w", Bytes(5)), w);
  EXPECT_NE(unused, y);
  builder.list(third, y, true, false);
  builder.list(third, w, true, true);
  builder.list(first, y, false, true);
  builder.list(first, x, true, false);
  builder.list(first, w, true, false);
  builder.list(first, w, true, false);
  const NpuTrace trace = keep(builder);
  const Tensors& tensors = trace.graph->tensors;
  EXPECT_EQ(listed(store_, trace, 0), "needs x, needs w, makes y");
  EXPECT_EQ(listed(store_, trace, 1), "");
  EXPECT_EQ(listed(store_, trace, 2), "needs y, updates w");
  EXPECT_EQ(tensors.sizes, (std::vector<std::uint64_t>{3, 5, 7}));
  EXPECT_EQ(tensors.num_listings, (std::vector<std::uint32_t>{1, 2, 2}));
  EXPECT_EQ(tensors.first, (std::vector<std::uint32_t>{0, 3, 3, 5}));
  EXPECT_EQ(tensors.has_maker(), (std::vector<bool>{false, false, true}));
}

TEST_F(TensorsTest, KeepTheNamesOfALargeFile) {
  // A file of more than 1 MB, in which no name comes twice: it must be read in several pieces, and names in batches.
  // Each node must have its own name, and each tensor too.
  constexpr std::uint32_t count = 20000;
  const auto name = [](const char* what, std::uint32_t i) {
    return std::string(what) + "_with_a_name_of_its_own_" + std::to_string(i);
  };
  et::File file;
  file.metadata();
  for (std::uint32_t i = 0; i < count; ++i) {
    et::Node node = et::compute(i, name("node", i), 1, 1);
    node.inputs({}).outputs({name("tensor", i), "8.0"});
    file.add(node);
  }
  ASSERT_GT(file.text().size(), std::size_t{1} << 20);
  const NpuTrace trace = read_bytes(file.text());
  for (std::uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(store_.name(trace.labels->names[i]), name("node", i));
    ASSERT_EQ(listed(store_, trace, i), "makes " + name("tensor", i));
  }
}

TEST_F(TensorsTest, TakeNoMemoryWhereNoNodeListsOne) {
  // A tensor that no node lists: the graph must have no tensors and take no bytes for them.
  Builder builder;
  builder.compute("only", 1, Bytes(1), {});
  builder.tensor("unused", Bytes(5));
  const NpuTrace trace = keep(builder);
  EXPECT_EQ(trace.graph->tensors, Tensors());
  EXPECT_EQ(trace.graph->tensors.bytes(), 0U);
  EXPECT_TRUE(trace.graph->tensors.of(NodeId(0)).empty());
  EXPECT_TRUE(trace.labels->tensors.empty());
}

TEST_F(TensorsTest, TellGraphsApartByAllButTheirNames) {
  // Structures that differ in the name, the size or the use of a tensor: only the name may differ in a shared graph.
  const auto made = [&](std::string_view name, std::uint64_t size, bool needs) {
    Builder builder;
    const NodeId node = builder.compute("only", 1, Bytes(1), {});
    builder.list(node, builder.tensor(std::string(name), Bytes(size)), needs, true);
    return keep(builder);
  };
  const NpuTrace first = made("a", 4, true);
  EXPECT_EQ(first.graph, made("a", 4, true).graph);
  EXPECT_EQ(store_.num_structures(), 1U);
  const NpuTrace renamed = made("b", 4, true);
  EXPECT_EQ(first.graph, renamed.graph);
  EXPECT_NE(first.labels, renamed.labels);
  EXPECT_EQ(store_.num_structures(), 2U);
  EXPECT_NE(first.graph, made("a", 5, true).graph);
  EXPECT_NE(first.graph, made("a", 4, false).graph);
  EXPECT_EQ(store_.num_graphs(), 3U);
  EXPECT_EQ(first.graph->tensors.bytes(), 8U + 4U + 2 * 4U + 4U);
}

TEST_F(TensorsTest, AreReadFromTheListsOfNodes) {
  // A trace whose nodes list inputs and outputs in different orders: the lists must be by node in ascending order,
  // inputs before outputs, and without tensors of 0 bytes.
  et::Node last(7, "last", et::comm_coll);
  last.int64("comm_type", 0).int64("comm_size", 8).data({3}).inputs({"y", "7"}).outputs({});
  const NpuTrace trace =
      read({last, et::compute(3, "update").outputs({"w", "5", "y", "7"}).inputs({"x", "16.0", "w", "5.00"}),
            et::Node(2, "nothing", et::metadata).inputs({"x", "1.6e1", "none", "0"})});
  EXPECT_EQ(listed(store_, trace, 0), "needs x");
  EXPECT_EQ(listed(store_, trace, 1), "needs x, updates w, makes y");
  EXPECT_EQ(listed(store_, trace, 2), "needs y");
  EXPECT_EQ(trace.graph->tensors.sizes, (std::vector<std::uint64_t>{16, 5, 7}));
  EXPECT_EQ(trace.graph->tensors.num_listings, (std::vector<std::uint32_t>{2, 1, 2}));
  EXPECT_EQ(trace.graph->tensors.has_maker(), (std::vector<bool>{false, false, true}));
}

TEST_F(TensorsTest, OfOneTraceHaveNothingToDoWithThoseOfAnother) {
  // Two traces that give a tensor of the same name different sizes: both must be read.
  read({et::compute(1, "a").inputs({"x", "3", "y", "0", "z", "8"}).outputs({"w", "4"})});
  const NpuTrace trace = store_.read(
      write(file_of({et::compute(1, "a").inputs({"y", "5", "x", "6", "v", "7"}).outputs({"x", "6"})}), "1.et"),
      NpuId(1));
  EXPECT_EQ(listed(store_, trace, 0), "needs y, updates x, needs v");
  EXPECT_EQ(trace.graph->tensors.sizes, (std::vector<std::uint64_t>{5, 6, 7}));
}

TEST_F(TensorsTest, HaveSizesThatAreWholeNumbers) {
  // Sizes as integers, decimal numbers and powers of ten: whole numbers up to the largest must be read exactly.
  const auto size_of = [&](std::string_view text) {
    std::filesystem::remove(folder_ / "t.0.et");
    Store store = make_store();
    const NpuTrace trace = store.read(write(file_of({et::compute(1, "a").inputs({"x", text})})), NpuId(0));
    return trace.graph->tensors.sizes.empty() ? 0 : trace.graph->tensors.sizes.front();
  };
  EXPECT_EQ(size_of("1"), 1U);
  EXPECT_EQ(size_of("0"), 0U);
  EXPECT_EQ(size_of("-0.0"), 0U);
  EXPECT_EQ(size_of("12."), 12U);
  EXPECT_EQ(size_of("1e+16"), 10'000'000'000'000'000U);
  EXPECT_EQ(size_of("9007199254740993.0"), 9'007'199'254'740'993U) << "more than a double tells apart";
  EXPECT_EQ(size_of("9223372036854775807"), Bytes::most().count());
}

TEST_F(TensorsTest, OfTwoSizesKeepTheFirstWithoutACapacity) {
  // A tensor that three nodes list with different sizes, in a system whose memory has no size: the first size must
  // count, and one notice must count the others.
  const NpuTrace trace = read({et::compute(1, "a").inputs({"w", "5"}), et::compute(2, "b").inputs({"w", "6"}),
                               et::compute(3, "c").outputs({"w", "7"})});
  EXPECT_EQ(trace.graph->tensors.sizes, (std::vector<std::uint64_t>{5}));
  const auto& said = store_.notices().entries().at("tensor-size");
  EXPECT_EQ(said.count, 2U);
  EXPECT_HAS(said.text, "node 2: tensor 'w' in inputs has 6 bytes, but 5 where it was listed before");
}

TEST_F(TensorsTest, AreRefusedWithTheirNode) {
  // Sizes that are no whole numbers, lists without a size, two sizes of a tensor, and more bytes than can be counted:
  // the message must give the node and the tensor.
  const auto refused = [&](std::initializer_list<std::string_view> inputs) {
    return refusal({et::compute(1, "a").inputs({"w", "5"}), et::compute(2, "b").inputs(inputs)});
  };
  for (const auto& [text, what] :
       {std::pair("-4", "is -4"), std::pair("-4.5", "is -4"), std::pair("1.5", "is not a whole number"),
        std::pair("5 MB", "is not a number"), std::pair("", "is not a number"), std::pair("nan", "is not a number"),
        std::pair("inf", "does not fit 64 bits"), std::pair("1e999", "does not fit 64 bits"),
        std::pair("18446744073709551616", "does not fit 64 bits")})
    EXPECT_HAS(refused({"x", text}), std::string("node 2 'b' (byte 67): the size of tensor 'x' in inputs ") + what);
  EXPECT_HAS(refused({"x", "4", "y"}), "inputs ends with tensor 'y' without its bytes");
  store_ = Store({.num_npus = 8, .memory_has_size = true}, {});
  EXPECT_HAS(refused({"w", "6"}), "tensor 'w' in inputs has 6 bytes, but 5 where it was listed before");
  EXPECT_HAS(refused({"w", "0"}), "tensor 'w' in inputs has 0 bytes, but 5 where it was listed before");
  EXPECT_HAS(refused({"x", "9223372036854775803"}),
             "with tensor 'x' in inputs the tensors of this trace have more than 9223372036854775807 bytes");
  EXPECT_HAS(refusal({et::compute(1, "a").outputs({"x", "0"}), et::compute(2, "b").inputs({"x", "3"})}),
             "tensor 'x' in inputs has 3 bytes, but 0 where");
  for (const et::Node& node : {et::compute(1, "a").text("outputs", "x 4"), et::compute(1, "a").int64("outputs", 4),
                               et::compute(1, "a").bools("outputs", {1})})
    EXPECT_HAS(refusal({node}), "node 1 'a' (byte 9): outputs is no list of texts");
  EXPECT_HAS(refusal({et::compute(1, "a").attribute("inputs", et::Message().bytes(30, "\x0a\x05xy"))}),
             "is not a Chakra node");
}

TEST_F(TensorsTest, AreReadAsTheyWereWritten) {
  // A made trace with tensors is written and read: graph and labels must be the same.
  Builder builder;
  const NodeId first = builder.compute("first", 1, Bytes(1), {});
  const NodeId none = builder.collective("none", CollectiveKind::all_reduce, Bytes(8), 0, {{first}});
  const NodeId last = builder.access("last", NodeKind::mem_store, Bytes(8), {{none}});
  const auto y = builder.tensor("y", Bytes(7)), x = builder.tensor("x", Bytes(3));
  const auto large = builder.tensor("large", Bytes(Bytes::most().count() - 10));
  builder.list(last, y, true, true);
  builder.list(last, large, false, true);
  builder.list(first, y, false, true);
  builder.list(first, x, true, false);
  NpuTrace made = keep(builder);
  made.groups = {store_.keep_group("", {})};
  write_trace(store_, distinct_names(store_), made, NpuId(0), folder_ / "made.0.et");
  const NpuTrace read = store_.read(folder_ / "made.0.et", NpuId(0));
  EXPECT_EQ(read.graph, made.graph);
  EXPECT_EQ(read.labels, made.labels);
}

}  // namespace
}  // namespace orrery::trace
