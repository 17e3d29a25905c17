#include "orrery/trace/writer.hpp"

#include "fixture.hpp"
#include "orrery/trace/builder.hpp"

namespace orrery::trace {
namespace {

class WriterTest : public TraceTest {};

TEST_F(WriterTest, AccessesAreReadAsTheyWereMade) {
  // Accesses of an NPU alone and of groups are made, written and read: kinds, sizes, collectives, groups and
  // dependencies must be the same.
  Builder builder;
  const NodeId load = builder.access("load", NodeKind::mem_load, Bytes(10), {});
  const NodeId gather =
      builder.access("gather", NodeKind::mem_load, Bytes(20), CollectiveKind::all_gather, 5, {{load}});
  const NodeId sum = builder.access("sum", NodeKind::mem_store, Bytes(30), CollectiveKind::all_reduce, 9, {{gather}});
  builder.access("shards", NodeKind::mem_store, Bytes(40), CollectiveKind::reduce_scatter, 5, {{load, sum}});
  Structure structure = builder.finish();
  EXPECT_EQ(structure.groups, (std::vector<std::uint32_t>{5, 9}));

  Store made = make_store();
  NpuTrace trace = made.keep(std::move(structure), "made");
  trace.groups = {made.keep_group("g", npus({0, 3})), made.keep_group("h", npus({2, 0}))};
  const auto path = folder_ / "made.0.et";
  write_trace(made, distinct_names(made), trace, NpuId(0), path);

  Store store = make_store({{"g", npus({0, 3})}, {"h", npus({2, 0})}});
  const NpuTrace read = store.read(path, NpuId(0));
  ASSERT_EQ(read.graph->num_nodes(), 4U);
  EXPECT_EQ(read.graph->successors, trace.graph->successors);
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Node &written = trace.graph->nodes[i], &node = read.graph->nodes[i];
    EXPECT_EQ(store.name_of(read, NodeId(i)), made.name_of(trace, NodeId(i)));
    EXPECT_EQ(node.kind, written.kind);
    EXPECT_EQ(node.size, written.size);
    EXPECT_EQ(node.is_of_group(), written.is_of_group());
    EXPECT_EQ(node.detail, written.detail);
    if (!node.is_of_group()) continue;
    EXPECT_EQ(node.collective, written.collective);
    EXPECT_EQ(store.groups()[read.groups[node.slot].index()], made.groups()[trace.groups[written.slot].index()]);
  }
}

// Two traces of different precisions and one that names none. A system with one rate reads them all, but files cannot
// name both precisions.
TEST_F(WriterTest, TracesOfOneStoreNameOnePrecision) {
  const auto write_named = [&](const std::string& name, std::string_view precision) {
    Writer writer(folder_ / name, precision);
    writer.close();
  };
  write_named("none.et", "");
  write_named("fp8.et", "fp8");
  write_named("fp32.et", "fp32");
  Store store = make_store();
  store.read(folder_ / "none.et", NpuId(0));
  EXPECT_EQ(store.precision(), "");
  store.read(folder_ / "fp8.et", NpuId(1));
  EXPECT_EQ(store.precision(), "fp8");
  const NpuTrace last = store.read(folder_ / "fp32.et", NpuId(2));
  const std::string refused =
      refusal_of([&] { write_trace(store, distinct_names(store), last, NpuId(2), folder_ / "out.et"); });
  EXPECT_NE(refused.find("one trace computes in fp32, another one in fp8"), std::string::npos) << refused;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out.et"));
}

}  // namespace
}  // namespace orrery::trace
