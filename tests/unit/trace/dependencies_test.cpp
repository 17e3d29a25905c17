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
  // Three nodes, of which b has node a among its data_deps and c has it among its ctrl_deps. Each policy must let a
  // be followed by the nodes whose fields it takes.
  const auto nodes = {et::Message(et::compute(0, "a")), et::Message(et::compute(1, "b").data({0})),
                      et::Message(et::compute(2, "c").ctrl({0}))};
  EXPECT_EQ(successors(read_with(Dependencies::automatic, nodes), 0), (Nodes{1, 2}));
  EXPECT_EQ(decision(), "");
  EXPECT_EQ(successors(read_with(Dependencies::both, nodes), 0), (Nodes{1, 2}));
  EXPECT_EQ(successors(read_with(Dependencies::data, nodes), 0), (Nodes{1}));
  EXPECT_EQ(successors(read_with(Dependencies::ctrl, nodes), 0), (Nodes{2}));
}

TEST_F(DependencyPolicy, ADependencyCountsOnce) {
  // Node b lists node a three times, in both fields: a must have b as its successor once.
  const NpuTrace trace = read({et::compute(0, "a"), et::compute(1, "b").data({0, 0}).ctrl({0})});
  EXPECT_EQ(successors(trace, 0), Nodes{1});
  EXPECT_EQ(trace.graph->nodes[1].num_dependencies, 1u);
}

TEST_F(DependencyPolicy, WithoutDataDepsTheCtrlDepsOrderNodes) {
  // No node has data_deps: ctrl_deps must order the nodes, with a notice. A trace without any dependency must give no
  // notice.
  const NpuTrace trace = read({et::compute(0, "a"), et::compute(1, "b").ctrl({0})});
  EXPECT_EQ(successors(trace, 0), Nodes{1});
  EXPECT_HAS(decision(), "no node has data_deps");
  read_with(Dependencies::automatic, {et::compute(0, "a")});
  EXPECT_EQ(decision(), "");
}

TEST_F(DependencyPolicy, CtrlDepsThatMakeACycleAreLeftOut) {
  // ctrl_deps and data_deps together make a cycle: by default data_deps alone must order the nodes, with a notice
  // that prints the cycle; with the policy `both` the trace must be refused.
  const auto nodes = {et::Message(et::compute(3, "a").ctrl({7})), et::Message(et::compute(7, "b").data({3}))};
  EXPECT_EQ(successors(read_with(Dependencies::automatic, nodes), 0), Nodes{1});
  EXPECT_HAS(decision(), "(3 'a' -> 7 'b' -> 3 'a'): data_deps alone order the nodes");
  EXPECT_HAS(refused_with(Dependencies::both, nodes), "the dependencies have a cycle: 3 'a' -> 7 'b' -> 3 'a'");
}

TEST_F(DependencyPolicy, ACycleIsRefusedAndPrinted) {
  // Traces with cycles of two nodes and of one node, by data_deps and by ctrl_deps: the message must give the node,
  // its byte and the cycle from its lowest id on.
  EXPECT_HAS(refused_with(Dependencies::automatic, {et::compute(7, "b").data({3}), et::compute(3, "a").data({7}),
                                                    et::compute(1, "root"), et::compute(9, "after").data({7})}),
             "t.0.et: NPU 0, node 3 'a' (byte 51): the dependencies have a cycle: 3 'a' -> 7 'b' -> 3 'a'; expected "
             "data_deps");
  EXPECT_HAS(refused_with(Dependencies::automatic, {et::compute(5, "x").data({5})}), "a cycle: 5 'x' -> 5 'x'");
  EXPECT_HAS(refused_with(Dependencies::automatic, {et::compute(5, "x").ctrl({5})}), "a cycle: 5 'x' -> 5 'x'");
  EXPECT_HAS(refused_with(Dependencies::ctrl, {et::compute(5, "x").ctrl({5})}), "expected ctrl_deps without a cycle");
}

TEST_F(DependencyPolicy, ALongCycleIsShortened) {
  // A cycle of 50 nodes: the message must print the first six and the last.
  et::File file;
  for (std::uint64_t id = 0; id < 50; ++id) file.add(et::compute(id, "n").data({(id + 49) % 50}));
  EXPECT_HAS(refusal_of_bytes(file.text()),
             "0 'n' -> 1 'n' -> 2 'n' -> 3 'n' -> 4 'n' -> 5 'n' -> ... 43 more ... -> 49 'n' -> 0 'n'");
}

TEST_F(DependencyPolicy, DependenciesOnAbsentNodesAreLeftOut) {
  // Two nodes with three dependencies on ids that the trace does not hold: they must be left out, with one notice
  // that counts three.
  const NpuTrace trace = read({et::compute(5, "a").data({1, 2}), et::compute(6, "b").data({5}).ctrl({99})});
  EXPECT_EQ(trace.graph->nodes[0].num_dependencies, 0u);
  EXPECT_EQ(trace.graph->nodes[1].num_dependencies, 1u);
  const auto& entry = store_.notices().entries().at("absent-dependency");
  EXPECT_EQ(entry.count, 3u);
  EXPECT_HAS(entry.text, "(node 5 'a' on 1)");
}

TEST_F(DependencyPolicy, IdsThatAreFarApartAreFound) {
  // Two nodes with ids 2 and 2^63, the second depending on the first: the dependency must be found.
  const std::uint64_t far = std::uint64_t{1} << 63;
  const NpuTrace trace = read({et::compute(far, "b").data({2, far - 1}), et::compute(2, "a")});
  EXPECT_EQ(successors(trace, 0), Nodes{1});
  EXPECT_EQ(trace.id_of(NodeId(1)), far);
}

}  // namespace
}  // namespace orrery::trace
