// Tensors of the local memory and the nodes that list them.
#include "fixture.hpp"
#include "orrery/trace/builder.hpp"

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

TEST_F(TensorsTest, StandInTheOrderOfTheirFirstUse) {
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

TEST_F(TensorsTest, GraphsWithoutThemHoldNothing) {
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

}  // namespace
}  // namespace orrery::trace
