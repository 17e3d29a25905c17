#include "orrery/workload/generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "assembled.hpp"
#include "orrery/workload/figures.hpp"
#include "random_description.hpp"
#include "temporary_folder.hpp"

namespace orrery::workload {
namespace {

using trace::CollectiveKind;
using trace::NodeKind;

constexpr std::uint32_t num_random = 150;

/// tp 2, pp 3, dp 2: NPU = t + 2 (d + 2 p).
Description example() {
  Description description{Transformer{.layers = 6, .hidden = 256, .sequence = 128, .attention = {.heads = 4}}, {}};
  description.parallel.sizes = {2, 1, 1, 2, 3};
  description.parallel.micro_batches = 5;
  return description;
}

std::map<std::string, std::vector<std::uint32_t>> members_by_name(const Description& description) {
  const Assembled made(description);
  std::map<std::string, std::vector<std::uint32_t>> members;
  for (const auto& group : made.store().groups())
    for (const NpuId npu : group.members) members[group.name].push_back(npu.value());
  return members;
}

// ---- both ways ----

using NodeValues =
    std::tuple<std::uint64_t, std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t, NodeKind, CollectiveKind>;

std::vector<NodeValues> values_of(const trace::Graph& graph) {
  std::vector<NodeValues> values;
  for (const auto& n : graph.nodes)
    values.emplace_back(n.size, n.detail, n.first_successor, n.num_dependencies, n.slot, n.kind, n.collective);
  return values;
}

TEST(Generator, WrittenTracesAreWhatIsAssembled) {
  // Forty random descriptions, assembled in memory and written as traces: reading the traces must give the same
  // graphs, tensors, tags, peers, groups and names on every NPU.
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const Description description = random_description(seed);
    const std::uint32_t num_npus = description.parallel.num_npus();
    const Assembled made(description);
    const test::TemporaryFolder folder;
    write_traces(description, folder.path() / "deep/workload");
    trace::Store store({.num_npus = num_npus}, trace::read_group_file(folder.path() / "deep/workload.json", num_npus));
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) {
      const auto read = store.read(folder.path() / ("deep/workload." + std::to_string(npu) + ".et"), NpuId(npu));
      const auto& trace = made.traces()[npu];
      ASSERT_EQ(values_of(*read.graph), values_of(*trace.graph));
      ASSERT_EQ(read.graph->successors, trace.graph->successors);
      ASSERT_EQ(read.graph->tensors, trace.graph->tensors);
      for (std::uint32_t i = 0; i < read.graph->tensors.sizes.size(); ++i)
        ASSERT_EQ(store.name(read.labels->tensors[i]), made.store().name(trace.labels->tensors[i]));
      ASSERT_EQ(read.tags, trace.tags);
      ASSERT_EQ(read.peers, trace.peers);
      ASSERT_EQ(read.groups.size(), trace.groups.size());
      for (std::size_t i = 0; i < read.groups.size(); ++i)
        ASSERT_EQ(store.groups()[read.groups[i].index()], made.store().groups()[trace.groups[i].index()]);
      for (std::uint32_t i = 0; i < read.graph->num_nodes(); ++i)
        ASSERT_EQ(store.name_of(read, NodeId(i)), made.name(trace, i));
    }
  }
}

TEST(Generator, ComputeNodesStandBetweenCommunications) {
  // Per stage, with k layers and m micro-batches: there must be 2 compute nodes for each layer, pass and micro-batch,
  // one for what is left of each pass after its last all-reduce, and the optimizer. With sequence parallelism the
  // backward pass of a block has two more: its second products wait for the input, which is gathered beside the
  // first.
  Description description = example();
  const std::size_t k = 2, m = 5;
  const auto compute_nodes = [&] {
    const Assembled made(description);
    std::size_t count = 0;
    Assembled::for_each(made.traces()[4], NodeKind::compute, [&](auto, const auto&) { ++count; });
    return count;
  };
  EXPECT_EQ(compute_nodes(), 4 * k * m + 2 * m + 1);
  description.parallel.sequence_parallel = true;
  EXPECT_EQ(compute_nodes(), 6 * k * m + 2 * m + 1);
}

TEST(Generator, TheNpusOfAStageShareAStructure) {
  // Three stages of four NPUs: there must be three structures, and the NPUs of a stage must share a graph.
  const Assembled made(example());
  EXPECT_EQ(made.store().num_structures(), 3U);
  for (std::uint32_t npu = 0; npu < 12; ++npu)
    EXPECT_EQ(made.traces()[npu].graph, made.traces()[npu / 4 * 4].graph) << npu;
}

// ---- what all traces must hold ----

TEST(Generator, EverySendHasItsReceive) {
  // Random descriptions: on every channel, sends and receives must have the same sizes in the same order of ids,
  // which is that of the chain.
  for (std::uint32_t seed = 0; seed < num_random; ++seed) {
    SCOPED_TRACE(seed);
    const Assembled made(random_description(seed));
    // The sizes of each channel in order of ids, which for sends and for receives is that of the chain.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>> sent, received;
    for (std::uint32_t npu = 0; npu < made.traces().size(); ++npu) {
      const auto& trace = made.traces()[npu];
      Assembled::for_each(trace, NodeKind::send, [&](auto, const auto& node) {
        sent[{npu, trace.peers[node.slot].value(), trace.tags[node.detail]}].push_back(node.size);
      });
      Assembled::for_each(trace, NodeKind::receive, [&](auto, const auto& node) {
        received[{trace.peers[node.slot].value(), npu, trace.tags[node.detail]}].push_back(node.size);
      });
    }
    EXPECT_EQ(sent, received);
  }
}

TEST(Generator, MembersOfAGroupAgree) {
  // Random descriptions: all members of a group must have the same collectives and accesses in the same order, and
  // nobody else any.
  for (std::uint32_t seed = 0; seed < num_random; ++seed) {
    SCOPED_TRACE(seed);
    const Assembled made(random_description(seed));
    using Call = std::tuple<NodeKind, CollectiveKind, std::uint64_t>;
    std::map<std::uint32_t, std::map<std::uint32_t, std::vector<Call>>> calls;
    for (std::uint32_t npu = 0; npu < made.traces().size(); ++npu) {
      const auto& trace = made.traces()[npu];
      for (const NodeKind kind : {NodeKind::collective, NodeKind::mem_load, NodeKind::mem_store})
        Assembled::for_each(trace, kind, [&](auto, const auto& node) {
          if (node.is_of_group())
            calls[trace.groups[node.slot].value()][npu].emplace_back(kind, node.collective, node.size);
        });
    }
    for (const auto& [group, by_npu] : calls) {
      const auto& known = made.store().groups()[group];
      ASSERT_GT(made.num_members(known), 1U);
      ASSERT_EQ(by_npu.size(), made.num_members(known));
      for (const NpuId member : known.members) ASSERT_TRUE(by_npu.contains(member.value()));
      for (const auto& [npu, mine] : by_npu) ASSERT_EQ(mine, by_npu.begin()->second);
    }
  }
}

/// Executes the traces without times: every node as soon as it can, collectives when all members have come to them.
/// Returns how many nodes are never done.
std::uint64_t stuck_nodes(const Assembled& made) {
  const auto& traces = made.traces();
  std::vector<std::vector<std::uint32_t>> missing(traces.size());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> done;  // (npu, node), a queue
  std::uint64_t left = 0;
  std::map<std::pair<bool, std::uint32_t>, std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>>
      joined;  // by whether it is an access, group; number
  std::map<std::tuple<std::uint32_t, bool, std::uint32_t>, std::uint32_t> calls;  // by npu and the same
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::int64_t> sent;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>> waiting;
  const auto start = [&](std::uint32_t npu, std::uint32_t i) {
    const auto& trace = traces[npu];
    const auto& node = trace.graph->nodes[i];
    if (node.is_of_group()) {
      const auto group = trace.groups[node.slot].value();
      auto& rounds = joined[{node.is_access(), group}];
      const auto number = calls[{npu, node.is_access(), group}]++;
      if (rounds.size() <= number) rounds.resize(number + 1);
      rounds[number].emplace_back(npu, i);
      if (rounds[number].size() == made.num_members(made.store().groups()[group]))
        done.insert(done.end(), rounds[number].begin(), rounds[number].end());
    } else if (node.kind == NodeKind::send) {
      const std::tuple channel(npu, trace.peers[node.slot].value(), trace.tags[node.detail]);
      done.emplace_back(npu, i);
      if (auto& receives = waiting[channel]; !receives.empty()) {
        done.emplace_back(trace.peers[node.slot].value(), receives.front());
        receives.erase(receives.begin());
      } else {
        ++sent[channel];
      }
    } else if (node.kind == NodeKind::receive) {
      const std::tuple channel(trace.peers[node.slot].value(), npu, trace.tags[node.detail]);
      if (sent[channel] > 0) {
        --sent[channel];
        done.emplace_back(npu, i);
      } else {
        waiting[channel].push_back(i);
      }
    } else {
      done.emplace_back(npu, i);
    }
  };
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu) {
    const auto& graph = *traces[npu].graph;
    left += graph.num_nodes();
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) missing[npu].push_back(graph.nodes[i].num_dependencies);
  }
  for (std::uint32_t npu = 0; npu < traces.size(); ++npu)
    for (std::uint32_t i = 0; i < missing[npu].size(); ++i)
      if (traces[npu].graph->nodes[i].num_dependencies == 0) start(npu, i);
  for (std::size_t k = 0; k < done.size(); ++k) {
    const auto [npu, i] = done[k];
    --left;
    for (const auto next : traces[npu].graph->successors_of(NodeId(i)))
      if (--missing[npu][next] == 0) start(npu, next);
  }
  return left;
}

TEST(Generator, NothingIsStuck) {
  // Random descriptions, executed without times: every node must be done.
  for (std::uint32_t seed = 0; seed < num_random; ++seed)
    EXPECT_EQ(stuck_nodes(Assembled(random_description(seed))), 0U) << seed;
}

TEST(Generator, ATraceHasOneOptimizerIfNothingIsOffloaded) {
  // Random descriptions without offload: every trace must have one node of the optimizer.
  for (std::uint32_t seed = 0; seed < num_random; ++seed) {
    const Description description = random_description(seed);
    if (description.parallel.sharding.offload.any()) continue;
    const Assembled made(description);
    for (const auto& trace : made.traces()) {
      std::uint64_t optimizers = 0;
      Assembled::for_each(trace, NodeKind::compute,
                          [&](std::uint32_t i, const auto&) { optimizers += made.name(trace, i) == "optimizer"; });
      ASSERT_EQ(optimizers, 1U) << seed;
    }
  }
}

// ---- FLOPs ----

std::uint64_t flops(const Description& description) {
  const Assembled made(description);
  std::uint64_t sum = 0;
  for (const auto& trace : made.traces())
    Assembled::for_each(trace, NodeKind::compute, [&](std::uint32_t i, const auto& node) {
      if (!made.name(trace, i).starts_with("optimizer")) sum += node.detail;
    });
  return sum;
}

TEST(Generator, FlopsDoNotDependOnTheParallelisation) {
  // Random descriptions, and the same model and samples on one NPU: the FLOPs of all NPUs must be the same.
  int compared = 0;
  for (std::uint32_t seed = 0; seed < num_random; ++seed) {
    const Description divided = random_description(seed);
    Description whole = divided;
    whole.parallel.sizes = {1, 1, 1, 1, 1};
    whole.parallel.interleaving = 1;
    whole.parallel.sharding.replicas = 1;
    whole.parallel.micro_batches *= divided.parallel.num_replicas();
    EXPECT_EQ(flops(divided), flops(whole)) << seed;
    compared += divided.parallel.num_npus() > 1;
  }
  EXPECT_GT(compared, 100);
}

TEST(Generator, FlopsOfAStepFollowTheFormula) {
  // A token costs 2 FLOPs for a parameter forward and 4 backward, and attention over s tokens 4 s h more in each
  // layer, twice that backward: 6 P T + 12 s h L T for the P = 12 h^2 L parameters of the layers and T tokens
  // (Narayanan et al., 2021, appendix). Full recomputation must make the 72 of the formula a 96, selective
  // recomputation must add 4 s h for attention's core. Masked scores, half of them, are computed and do not count for
  // the model.
  Description description = example();
  auto& model = std::get<Transformer>(description.model);
  model.attention.fused = false;  // which computes the scores twice
  const std::uint64_t h = model.hidden, s = model.sequence, layers = model.layers;
  const std::uint64_t parameters = 12 * h * h * layers, tokens = 2 * 5 * s;
  EXPECT_EQ(flops(description), 6 * parameters * tokens + 12 * s * h * layers * tokens);
  EXPECT_EQ(figures(description).model_flops,
            static_cast<double>(6 * parameters * tokens + 6 * s * h * layers * tokens));
  // The whole forward pass once more makes the 72 of the formula a 96.
  description.parallel.recompute = Recompute::full;
  EXPECT_EQ(flops(description), (6 * parameters * tokens + 12 * s * h * layers * tokens) / 3 * 4);
  // Attention's core once more: 4 s h.
  description.parallel.recompute = Recompute::selective;
  EXPECT_EQ(flops(description), 6 * parameters * tokens + 16 * s * h * layers * tokens);
}

// ---- collectives ----

using Kinds = std::map<std::string, CommunicationTotal>;

Kinds traffic(const Description& description, std::uint32_t stage) {
  return figures(description).stages[stage].communication;
}

TEST(Generator, TensorParallelismMovesThePublishedBytes) {
  // With A = 2 s h bytes of activations, k layers on a stage and m micro-batches: tensor parallelism must take 4
  // all-reduces of A for each layer and micro-batch (Shoeybi et al., 2019); with sequence parallelism 6 all-gathers
  // of A / tp and 4 reduce-scatters of A (Korthikanti et al., 2022, and the gathering of inputs in the backward
  // pass).
  Description description = example();
  const std::uint64_t activations = 2 * 128 * 256, k = 2, m = 5;
  const std::uint64_t gradients = k * (12 * 256 * 256 / 2 + 2 * 256) * 2;
  EXPECT_EQ(traffic(description, 1), (Kinds{{"all-reduce tp", {4 * k * m, 4 * k * m * activations}},
                                            {"all-reduce dp", {k, gradients}},
                                            {"send pp", {2 * m, 2 * m * activations}}}));
  description.parallel.sequence_parallel = true;
  EXPECT_EQ(traffic(description, 1), (Kinds{{"all-gather tp", {6 * k * m, 6 * k * m * activations / 2}},
                                            {"reduce-scatter tp", {4 * k * m, 4 * k * m * activations}},
                                            {"all-reduce dp", {k, gradients}},
                                            {"send pp", {2 * m, 2 * m * activations / 2}}}));
}

TEST(Generator, ZeroMovesThePublishedBytes) {
  // ZeRO (Rajbhandari et al., 2020, section 7) on 4 copies with 3 micro-batches: 2 P bytes must be reduced and 2 P
  // gathered with stages 1 and 2, twice gathered with stage 3; stages 2 and 3 must repeat what they do in each
  // micro-batch.
  Description description{Transformer{.layers = 4, .hidden = 64, .sequence = 32, .attention = {.heads = 4}}, {}};
  description.parallel.sizes = {1, 1, 1, 4, 1};
  description.parallel.micro_batches = 3;
  const std::uint64_t whole = 4 * (12 * 64 * 64 + 2 * 64) * 2, share = whole / 4;
  const auto with = [&](std::uint32_t zero) {
    description.parallel.sharding.zero = zero;
    return traffic(description, 0);
  };
  EXPECT_EQ(with(0), (Kinds{{"all-reduce dp", {4, whole}}}));
  EXPECT_EQ(with(1), (Kinds{{"reduce-scatter dp", {4, whole}}, {"all-gather dp", {4, share}}}));
  EXPECT_EQ(with(2), (Kinds{{"reduce-scatter dp", {12, 3 * whole}}, {"all-gather dp", {4, share}}}));
  EXPECT_EQ(with(3), (Kinds{{"reduce-scatter dp", {12, 3 * whole}}, {"all-gather dp", {24, 6 * share}}}));
}

TEST(Generator, ReplicasSumTheirShares) {
  // With dp 4 and 2 replicas ZeRO must divide states between 2 NPUs, and the shares of gradients must be summed over
  // the two replicas whenever they are reduced: NPU 1 of the one has the same share as NPU 3 of the other.
  Description description{Transformer{.layers = 4, .hidden = 64, .sequence = 32, .attention = {.heads = 4}}, {}};
  description.parallel.sizes = {1, 1, 1, 4, 1};
  description.parallel.micro_batches = 3;
  description.parallel.sharding.replicas = 2;
  const std::uint64_t whole = 4 * (12 * 64 * 64 + 2 * 64) * 2, share = whole / 2;
  const auto with = [&](std::uint32_t zero) {
    description.parallel.sharding.zero = zero;
    return traffic(description, 0);
  };
  EXPECT_EQ(
      with(1),
      (Kinds{{"reduce-scatter dp", {4, whole}}, {"all-reduce replicas", {4, share}}, {"all-gather dp", {4, share}}}));
  EXPECT_EQ(with(3), (Kinds{{"reduce-scatter dp", {12, 3 * whole}},
                            {"all-reduce replicas", {12, 3 * share}},
                            {"all-gather dp", {24, 6 * share}}}));
  const auto members = members_by_name(description);
  EXPECT_EQ(members.at("dp_dp2"), (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(members.at("replicas_dp1"), (std::vector<std::uint32_t>{1, 3}));
}

TEST(Generator, ABucketClosesWhenItIsFull) {
  // Four layers of P bytes each: buckets of at least 1.5 P and 2.5 P must make 2 all-reduces, a bucket larger than
  // all must make one at the end.
  Description description{Transformer{.layers = 4, .hidden = 64, .sequence = 32, .attention = {.heads = 4}}, {}};
  description.parallel.sizes = {1, 1, 1, 4, 1};
  const std::uint64_t layer = (12 * 64 * 64 + 2 * 64) * 2;
  const auto in_buckets_of = [&](std::uint64_t bytes) {
    description.parallel.sharding.bucket = Bytes(bytes);
    return traffic(description, 0).at("all-reduce dp");
  };
  EXPECT_EQ(in_buckets_of(0), (CommunicationTotal{4, 4 * layer}));
  EXPECT_EQ(in_buckets_of(layer * 3 / 2), (CommunicationTotal{2, 4 * layer}));
  EXPECT_EQ(in_buckets_of(layer * 5 / 2), (CommunicationTotal{2, 4 * layer}));
  EXPECT_EQ(in_buckets_of(layer * 4 + 1), (CommunicationTotal{1, 4 * layer}));
}

TEST(Generator, BucketsFollowTheRuleOfMegatron) {
  // Twelve layers of 12.6 M parameters each. Up to 40 copies a bucket must have 40 M parameters or more, which is four
  // layers; 64 copies need 64 M, which is six. Without overlap all are one bucket.
  Description description{Transformer{.layers = 12, .hidden = 1024, .sequence = 32, .attention = {.heads = 8}}, {}};
  auto& parallel = description.parallel;
  parallel.sharding.bucket = {};
  const std::uint64_t all = 12 * (12 * 1024 * 1024 + 2 * 1024) * 2;
  const auto with = [&](std::uint32_t cp, std::uint32_t dp, std::uint32_t stage) {
    parallel[Axis::cp] = cp;
    parallel[Axis::dp] = dp;
    return traffic(description, stage).at("all-reduce dp");
  };
  EXPECT_EQ(with(1, 40, 0), (CommunicationTotal{3, all}));
  EXPECT_EQ(with(2, 32, 0), (CommunicationTotal{2, all}));
  EXPECT_EQ(with(1, 64, 0), (CommunicationTotal{2, all}));
  parallel.gradients = Precision::fp32;
  EXPECT_EQ(with(1, 4, 0), (CommunicationTotal{3, 2 * all}));
  // Only the first part of the model is divided: of two stages the first has buckets of four and two layers. Two
  // virtual stages are two buckets.
  parallel[Axis::pp] = 2;
  EXPECT_EQ(with(1, 4, 0), (CommunicationTotal{2, all}));
  EXPECT_EQ(with(1, 4, 1), (CommunicationTotal{1, all}));
  parallel.interleaving = parallel.micro_batches = 2;
  EXPECT_EQ(with(1, 4, 1), (CommunicationTotal{2, all}));
  parallel[Axis::pp] = parallel.interleaving = 1;
  parallel.sharding.overlap = false;
  EXPECT_EQ(with(1, 4, 0), (CommunicationTotal{1, 2 * all}));
}

TEST(Generator, ExpertsExchangeTheirTokens) {
  // Experts on ep 4 and dp 2: each token's vector must go to top_k experts and back, forward and backward. Gradients
  // of experts must be summed along dp, all others along dp and ep.
  Description description{Transformer{.layers = 3,
                                      .hidden = 64,
                                      .sequence = 32,
                                      .attention = {.heads = 4},
                                      .mlp = {.width = 96, .gated = true, .experts = 8, .top_k = 2}},
                          {}};
  description.parallel.sizes = {1, 1, 4, 2, 1};
  const std::uint64_t expert = 3 * 64 * 96, dense = 4 * 64 * 64 + 2 * 64 + 64 * 8;
  EXPECT_EQ(traffic(description, 0), (Kinds{{"all-to-all ep", {4 * 3, 4 * 3 * 32 * 2 * 64 * 2}},
                                            {"all-reduce dp", {3, 3 * dense * 2}},
                                            {"all-reduce edp", {3, 3 * 2 * expert * 2}}}));
}

TEST(Generator, ContextParallelismGathersKeysAndValues) {
  // cp 4 with two heads of keys and values: keys and values of the whole sequence must be gathered, their gradients
  // summed.
  Description description{
      Transformer{.layers = 3, .hidden = 64, .sequence = 32, .attention = {.heads = 4, .kv_heads = 2}}, {}};
  description.parallel.sizes = {1, 4, 1, 1, 1};
  const auto found = traffic(description, 0);
  EXPECT_EQ(found.at("all-gather cp"), (CommunicationTotal{2 * 3, 2 * 3 * 8 * 32 * 2}));
  EXPECT_EQ(found.at("reduce-scatter cp"), (CommunicationTotal{2 * 3, 2 * 3 * 32 * 32 * 2}));
  EXPECT_EQ(found.at("all-reduce dp").count, 3U);
}

TEST(Generator, ADlrmExchangesItsPooledVectors) {
  // A DLRM of three tables on 4 NPUs: the pooled vectors of all tables must go there and back, and the gradients of
  // both MLPs must be summed.
  Description description{
      Dlrm{.dense_features = 13, .bottom = {32, 16}, .tables = {{1000}, {50}, {7}}, .pooling = 2, .top = {32, 1}}, {}};
  description.parallel.sizes = {1, 1, 1, 4, 1};
  description.parallel.micro_batch = 10;
  const std::uint64_t low = 14 * 32 + 33 * 16, high = (16 + 6 + 1) * 32 + 33;
  EXPECT_EQ(traffic(description, 0),
            (Kinds{{"all-to-all dp", {2, 2 * 10 * 3 * 16 * 2}}, {"all-reduce dp", {2, (low + high) * 2}}}));
  EXPECT_EQ(figures(description).parameters, 1057 * 16 + low + high);
}

TEST(Generator, GroupsAreTheNpusAlongTheirAxes) {
  // tp 2, dp 2, pp 3: groups must have the NPUs that differ along their axis, and names that say where they are.
  const Assembled made(example());
  std::map<std::string, std::vector<std::uint32_t>> members;
  for (const auto& group : made.store().groups())
    for (const NpuId npu : group.members) members[group.name].push_back(npu.value());
  EXPECT_EQ(members.at("tp_dp0_pp1"), (std::vector<std::uint32_t>{4, 5}));
  EXPECT_EQ(members.at("tp_dp1_pp2"), (std::vector<std::uint32_t>{10, 11}));
  EXPECT_EQ(members.at("dp_tp1_pp2"), (std::vector<std::uint32_t>{9, 11}));
}

TEST(Generator, PlacementSaysWhichAxisIsInnermost) {
  // The same with pp innermost: members of groups must follow the placement.
  Description description = example();
  description.parallel.placement = {Axis::pp, Axis::tp, Axis::dp, Axis::cp, Axis::ep};
  const auto members = members_by_name(description);
  EXPECT_EQ(members.at("tp_dp0_pp1"), (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(members.at("dp_tp1_pp2"), (std::vector<std::uint32_t>{5, 11}));
  EXPECT_EQ(placement_text(description.parallel), "[pp 3, tp 2, dp 2, cp 1, ep 1]");
}

// ---- order ----

/// "F0 F1 B0 ...": the micro-batches in the order in which a stage computes them; with the first layer of the chunk if
/// `with_layers`.
std::string schedule(const Assembled& made, std::uint32_t npu, bool with_layers = false) {
  std::string order, last;
  const auto& trace = made.traces()[npu];
  Assembled::for_each(trace, NodeKind::compute, [&](std::uint32_t i, const auto&) {
    const auto name = made.name(trace, i);
    if (name == "optimizer") return;
    const auto batch = name.find("micro_batch_") + std::string("micro_batch_").size();
    std::string pass = name.starts_with("forward") ? "F" : "B";
    pass += name.substr(batch, name.find('.', batch) - batch);
    if (with_layers) {
      const auto layer = name.find("layer_") + std::string("layer_").size();
      pass += '/';
      pass += name.substr(layer, name.find('.', layer) - layer);
    }
    if (pass != last) {
      if (!order.empty()) order += ' ';
      order += pass;
    }
    last = pass;
  });
  return order;
}

TEST(Generator, OneForwardOneBackward) {
  // Three stages and five micro-batches: stage p of P must do P - 1 - p forward passes first, then one forward and
  // one backward in turn.
  const Assembled made(example());
  EXPECT_EQ(schedule(made, 0), "F0 F1 F2 B0 F3 B1 F4 B2 B3 B4");
  EXPECT_EQ(schedule(made, 4), "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
  EXPECT_EQ(schedule(made, 8), "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
}

TEST(Generator, GpipeDoesAllForwardPassesFirst) {
  // The second of three stages with the GPipe schedule: all forward passes must come first.
  Description description = example();
  description.parallel.pipeline.schedule = Schedule::gpipe;
  EXPECT_EQ(schedule(Assembled(description), 4), "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4");
}

TEST(Generator, InterleavedPassesGoThroughTheChunksInTurn) {
  // Two stages of two chunks each, one layer in a chunk, so that stage 0 holds layers 0 and 2: the order must be that
  // of Narayanan et al. (2021), figure 4.
  Description description{Transformer{.layers = 4, .hidden = 64, .sequence = 32, .attention = {.heads = 4}}, {}};
  description.parallel.sizes = {1, 1, 1, 1, 2};
  description.parallel.interleaving = 2;
  description.parallel.micro_batches = 4;
  const Assembled made(description);
  EXPECT_EQ(schedule(made, 0, true), "F0/0 F1/0 F0/2 F1/2 F2/0 B0/2 F3/0 B1/2 F2/2 B0/0 F3/2 B1/0 B2/2 B3/2 B2/0 B3/0");
  EXPECT_EQ(schedule(made, 1, true), "F0/1 F1/1 F0/3 B0/3 F1/3 B1/3 F2/1 B0/1 F3/1 B1/1 F2/3 B2/3 F3/3 B3/3 B2/1 B3/1");
}

TEST(Generator, OneMicroBatchIsEnough) {
  // One micro-batch on three stages: the first stage must do its forward and its backward pass.
  Description description = example();
  description.parallel.micro_batches = 1;
  EXPECT_EQ(schedule(Assembled(description), 0), "F0 B0");
}

TEST(Generator, LayersLeftOverGoToTheMiddle) {
  // 6 layers on 4 stages: the stages must have 1, 2, 2 and 1 of them.
  Description description{Transformer{.layers = 6, .hidden = 64, .sequence = 32, .attention = {.heads = 4}}, {}};
  description.parallel.sizes = {1, 1, 1, 1, 4};
  const Assembled made(description);
  const auto num_layers = [&](std::uint32_t npu) {
    std::set<std::string> layers;
    const auto& trace = made.traces()[npu];
    Assembled::for_each(trace, NodeKind::compute, [&](std::uint32_t i, const auto&) {
      const auto name = made.name(trace, i);
      if (const auto at = name.find("layer_"); at != std::string::npos)
        layers.insert(name.substr(at, name.find('.', at) - at));
    });
    return layers.size();
  };
  EXPECT_EQ(num_layers(0), 1U);
  EXPECT_EQ(num_layers(1), 2U);
  EXPECT_EQ(num_layers(2), 2U);
  EXPECT_EQ(num_layers(3), 1U);
}

}  // namespace
}  // namespace orrery::workload
