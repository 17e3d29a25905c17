#include "orrery/synthesis/attack.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "orrery/synthesis/fidelity.hpp"

namespace orrery::synthesis {
namespace {

using NodeSizes = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // FLOPs and bytes of each node

/// Returns the trace of one NPU, whose compute nodes form a chain, or do not depend on each other.
std::vector<trace::NpuTrace> trace_of(const NodeSizes& sizes, bool is_chain = true) {
  auto graph = std::make_shared<trace::Graph>();
  for (std::size_t i = 0; i <= sizes.size(); ++i) {
    trace::Node node{};
    node.kind = trace::NodeKind::compute;
    node.first_successor = static_cast<std::uint32_t>(graph->successors.size());
    if (i < sizes.size()) {
      node.detail = sizes[i].first;
      node.size = sizes[i].second;
      node.num_dependencies = is_chain && i > 0 ? 1 : 0;
      if (is_chain && i + 1 < sizes.size()) graph->successors.push_back(static_cast<std::uint32_t>(i + 1));
    }
    graph->nodes.push_back(node);
  }
  std::vector<trace::NpuTrace> traces(1);
  traces[0].graph = std::move(graph);
  return traces;
}

Fidelity compared(const std::vector<trace::NpuTrace>& made, const std::vector<trace::NpuTrace>& input) {
  const trace::Store store({.num_npus = 1}, {});
  return fidelity_of({store, made}, {store, input});
}

/// Two sizes of 4 and 16 FLOPs: there are two, their mean is 10, and the larger one is four times the other. Bytes have
/// a mean of 40, so the geometric mean of both means is 20.
TEST(Attack, FeaturesAreLogarithmsOfWhatIsMeasured) {
  const Features features = features_of(trace_of({{4, 40}, {16, 40}}));
  const auto value = [&](int field, Measure measure) {
    return std::exp(features.at({false, trace::NodeKind::compute, -1, field, measure}));
  };
  EXPECT_DOUBLE_EQ(value(0, Measure::count), 2);
  EXPECT_DOUBLE_EQ(value(0, Measure::mean), 10);
  EXPECT_DOUBLE_EQ(value(0, Measure::spread), 4);
  EXPECT_DOUBLE_EQ(value(0, Measure::share), 1);
  EXPECT_DOUBLE_EQ(value(0, Measure::ratio), 0.5);
  EXPECT_DOUBLE_EQ(value(1, Measure::ratio), 2);
  EXPECT_DOUBLE_EQ(value(1, Measure::spread), 1);
  EXPECT_EQ(features.size(), 20);  // of the first NPU and of the last one, which is the same
}

/// A model with more nodes, and sizes that are all 100 times as large, is taken for the one that has such sizes and so
/// many nodes, but not by who compares ratios only.
TEST(Attack, RatiosSurviveAFactorOfAllSizes) {
  const std::vector<Features> known{features_of(trace_of({{10, 100}, {20, 100}})),
                                    features_of(trace_of({{1000, 10000}, {1500, 10000}, {3000, 10000}}))};
  EXPECT_EQ(nearest(known, known[0], Attacker::all), 0);
  EXPECT_EQ(nearest(known, known[1], Attacker::all), 1);
  const Features seen = features_of(trace_of({{1000, 10000}, {1500, 10000}, {2000, 10000}}));
  EXPECT_EQ(nearest(known, seen, Attacker::all), 1);
  EXPECT_EQ(nearest(known, seen, Attacker::ratios), 0);
}

/// Traces against themselves: nothing differs.
TEST(Fidelity, IsZeroOfEqualTraces) {
  const auto traces = trace_of({{10, 100}, {20, 200}, {30, 100}});
  const Fidelity found = compared(traces, traces);
  EXPECT_EQ(found.counts, 0);
  EXPECT_EQ(found.sizes, 0);
  EXPECT_EQ(found.depth, 0);
  EXPECT_EQ(found.degrees, 0);
}

/// Ten times the FLOPs and the same bytes: one decade for half of the sizes.
TEST(Fidelity, SizesAreComparedInDecades) {
  EXPECT_NEAR(compared(trace_of({{100, 7}, {1000, 7}}), trace_of({{10, 7}, {100, 7}})).sizes, 0.5, 1e-12);
}

/// Four nodes in a chain against four that do not wait for each other: the path has a quarter of the nodes, and three
/// of four nodes lose their dependency.
TEST(Fidelity, DepthAndDegreesAreThoseOfTheGraph) {
  const NodeSizes sizes(4, {10, 10});
  const Fidelity found = compared(trace_of(sizes, false), trace_of(sizes));
  EXPECT_DOUBLE_EQ(found.depth, 0.75);
  EXPECT_DOUBLE_EQ(found.degrees, 0.75);
  EXPECT_EQ(found.counts, 0);
}

}  // namespace
}  // namespace orrery::synthesis
