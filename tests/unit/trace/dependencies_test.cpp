// Dependency policies, cycles and absent nodes.
#include "fixture.hpp"

namespace orrery::trace {
namespace {

class DependencyPolicy : public TraceTest {
 protected:
  NpuTrace read_with(Dependencies policy, std::initializer_list<et::Message> nodes) {
    store_ = make_store({}, policy);
    return read(nodes);
  }
  std::string refused_with(Dependencies policy, std::initializer_list<et::Message> nodes) {
    return refusal_of([&] { read_with(policy, nodes); });
  }
  std::string decision() const {
    const auto& entries = store_.notices().entries();
    const auto found = entries.find("dependencies");
    return found == entries.end() ? "" : found->second.text;
  }
};

using Nodes = std::vector<std::uint32_t>;

TEST_F(DependencyPolicy, EachPolicyTakesItsFields) {
  const auto nodes = {et::Message(et::compute(0, "a")), et::Message(et::compute(1, "b").data({0})),
                      et::Message(et::compute(2, "c").ctrl({0}))};
  EXPECT_EQ(successors(read_with(Dependencies::automatic, nodes), 0), (Nodes{1, 2}));
  EXPECT_EQ(decision(), "");
  EXPECT_EQ(successors(read_with(Dependencies::both, nodes), 0), (Nodes{1, 2}));
  EXPECT_EQ(successors(read_with(Dependencies::data, nodes), 0), (Nodes{1}));
  EXPECT_EQ(successors(read_with(Dependencies::ctrl, nodes), 0), (Nodes{2}));
}

TEST_F(DependencyPolicy, ADependencyCountsOnce) {
  const NpuTrace trace = read({et::compute(0, "a"), et::compute(1, "b").data({0, 0}).ctrl({0})});
  EXPECT_EQ(successors(trace, 0), Nodes{1});
  EXPECT_EQ(trace.graph->nodes[1].num_dependencies, 1u);
}

TEST_F(DependencyPolicy, WithoutDataDepsCtrlDepsOrderAndItIsSaid) {
  const NpuTrace trace = read({et::compute(0, "a"), et::compute(1, "b").ctrl({0})});
  EXPECT_EQ(successors(trace, 0), Nodes{1});
  EXPECT_HAS(decision(), "no node has data_deps");
  read_with(Dependencies::automatic, {et::compute(0, "a")});
  EXPECT_EQ(decision(), "");
}

TEST_F(DependencyPolicy, CyclicCtrlDepsAreLeftOutAndItIsSaid) {
  const auto nodes = {et::Message(et::compute(3, "a").ctrl({7})), et::Message(et::compute(7, "b").data({3}))};
  EXPECT_EQ(successors(read_with(Dependencies::automatic, nodes), 0), Nodes{1});
  EXPECT_HAS(decision(), "(3 'a' -> 7 'b' -> 3 'a'): data_deps alone order the nodes");
  EXPECT_HAS(refused_with(Dependencies::both, nodes), "the dependencies have a cycle: 3 'a' -> 7 'b' -> 3 'a'");
}

TEST_F(DependencyPolicy, CyclesArePrinted) {
  EXPECT_HAS(refused_with(Dependencies::automatic, {et::compute(7, "b").data({3}), et::compute(3, "a").data({7}),
                                                    et::compute(1, "root"), et::compute(9, "after").data({7})}),
             "t.0.et: NPU 0, node 3 'a' (byte 51): the dependencies have a cycle: 3 'a' -> 7 'b' -> 3 'a'; expected "
             "data_deps");
  EXPECT_HAS(refused_with(Dependencies::automatic, {et::compute(5, "x").data({5})}), "a cycle: 5 'x' -> 5 'x'");
  EXPECT_HAS(refused_with(Dependencies::automatic, {et::compute(5, "x").ctrl({5})}), "a cycle: 5 'x' -> 5 'x'");
  EXPECT_HAS(refused_with(Dependencies::ctrl, {et::compute(5, "x").ctrl({5})}), "expected ctrl_deps without a cycle");
}

TEST_F(DependencyPolicy, LongCyclesAreShortened) {
  et::File file;
  for (std::uint64_t id = 0; id < 50; ++id) file.add(et::compute(id, "n").data({(id + 49) % 50}));
  EXPECT_HAS(refusal_of_bytes(file.text()),
             "0 'n' -> 1 'n' -> 2 'n' -> 3 'n' -> 4 'n' -> 5 'n' -> ... 43 more ... -> 49 'n' -> 0 'n'");
}

TEST_F(DependencyPolicy, AbsentNodesAreToleratedWithOneWarning) {
  const NpuTrace trace = read({et::compute(5, "a").data({1, 2}), et::compute(6, "b").data({5}).ctrl({99})});
  EXPECT_EQ(trace.graph->nodes[0].num_dependencies, 0u);
  EXPECT_EQ(trace.graph->nodes[1].num_dependencies, 1u);
  const auto& entry = store_.notices().entries().at("absent-dependency");
  EXPECT_EQ(entry.count, 3u);
  EXPECT_HAS(entry.text, "(node 5 'a' on 1)");
}

TEST_F(DependencyPolicy, IdsFarApartAreFoundToo) {
  const std::uint64_t far = std::uint64_t{1} << 63;
  const NpuTrace trace = read({et::compute(far, "b").data({2, far - 1}), et::compute(2, "a")});
  EXPECT_EQ(successors(trace, 0), Nodes{1});
  EXPECT_EQ(trace.id_of(NodeId(1)), far);
}

}  // namespace
}  // namespace orrery::trace
