#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "assembled.hpp"
#include "orrery/base/error.hpp"
#include "orrery/workload/figures.hpp"

namespace orrery::workload {
namespace {

using trace::NodeKind;
using Kinds = std::map<std::string, CommunicationTotal>;

constexpr std::uint64_t num_layers = 4, num_copies = 4, batches = 3;
constexpr std::uint64_t layer_parameters = 12 * 64 * 64 + 2 * 64;

/// 4 layers of equal size on 4 copies, 3 micro-batches.
Description four_copies() {
  Description description{Transformer{.layers = num_layers, .hidden = 64, .sequence = 32, .attention = {.heads = 4}},
                          {}};
  description.parallel.sizes = {1, 1, 1, num_copies, 1};
  description.parallel.micro_batches = batches;
  return description;
}

/// All that may be offloaded, and how.
std::vector<Offload> offloads(std::uint32_t zero) {
  std::vector<Offload> all;
  for (std::uint32_t bits = 0; bits < 16; ++bits) {
    const Offload offload{(bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0, (bits & 8U) != 0};
    if (!offload.on_path || offload.gradients || (offload.parameters && zero == 3)) all.push_back(offload);
  }
  return all;
}

/// What docs/workloads.md, "Offload", says of a step: counts and bytes by kind.
Kinds expected_traffic(const Parallel& parallel) {
  const auto& offload = parallel.sharding.offload;
  const std::uint32_t zero = parallel.sharding.zero;
  const bool fp32 = parallel.precision == Precision::fp32;
  const std::uint64_t value = fp32 ? 4 : 2, gradient = parallel.gradients == Precision::fp32 ? 4 : 2;
  const std::uint64_t k = num_layers, whole = layer_parameters, share = whole / num_copies;
  const std::uint64_t kept = zero == 3 ? share : whole, updated = zero >= 1 ? share : whole;
  Kinds kinds;
  const auto add = [&](bool is_there, const std::string& kind, std::uint64_t count, std::uint64_t bytes) {
    if (!is_there) return;
    kinds[kind].count += count;
    kinds[kind].bytes += count * bytes;
  };
  const std::uint64_t visits = 2 * batches * k;
  const bool gathered_by_path = offload.on_path && offload.parameters && zero == 3;
  add(gathered_by_path, "load with all-gather dp", visits, whole * value);
  add(offload.parameters && !gathered_by_path, "load", visits, kept * value);
  add(zero == 3 && !gathered_by_path, "all-gather dp", visits, share * value);

  const std::uint64_t sums = (zero >= 2 ? batches : 1) * k;
  const std::string sum = zero >= 1 ? "reduce-scatter dp" : "all-reduce dp";
  const bool summed_by_path = offload.on_path && offload.gradients;
  add(true, (summed_by_path ? "store with " : "") + sum, sums, whole * gradient);
  add(offload.gradients && !summed_by_path, "store", sums, updated * gradient);

  add(offload.gradients, "load", k, updated * gradient);
  add(offload.optimizer, "load", k, updated * (fp32 ? 8 : 12));
  add(offload.parameters && fp32, "load", k, updated * value);
  add(offload.optimizer, "store", k, updated * (fp32 ? 8 : 12));
  add(zero == 1 || zero == 2, "all-gather dp", k, share * value);
  add(offload.parameters, "store", k, kept * value);
  return kinds;
}

TEST(Offload, EveryCombinationMovesTheDocumentedBytes) {
  // Four layers on four copies, every stage of ZeRO, two precisions and everything that may be offloaded: counts and
  // bytes by kind must be those of docs/workloads.md, Offload.
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U})
    for (const Precision precision : {Precision::bf16, Precision::fp32})
      for (const Offload& offload : offloads(zero)) {
        Description description = four_copies();
        auto& parallel = description.parallel;
        parallel.sharding.zero = zero;
        parallel.precision = precision;
        parallel.sharding.offload = offload;
        SCOPED_TRACE(testing::Message() << "zero " << zero << ", fp32 " << (precision == Precision::fp32) << ", "
                                        << offload.parameters << offload.gradients << offload.optimizer
                                        << offload.on_path);
        EXPECT_EQ(figures(description).stages[0].communication, expected_traffic(parallel));
      }
}

TEST(Offload, LocalAndRemoteMemoryTogetherAreThatOfZero) {
  // The same with one and three micro-batches: each state must be in local or in remote memory, with the bytes that
  // ZeRO says. Reduced gradients are shares from stage 1 on; with stages 0 and 1 gradients of several micro-batches
  // add up in local memory.
  const std::uint64_t all = num_layers * layer_parameters, share = all / num_copies;
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U})
    for (const std::uint32_t micro_batches : {1U, 3U})
      for (const Offload& offload : offloads(zero)) {
        Description description = four_copies();
        description.parallel.sharding.zero = zero;
        description.parallel.micro_batches = micro_batches;
        description.parallel.sharding.offload = offload;
        const auto stage = figures(description).stages[0];
        const std::uint64_t parameters = 2 * (zero == 3 ? share : all), optimizer = 12 * (zero >= 1 ? share : all);
        EXPECT_EQ(stage.local.parameters, offload.parameters ? 0 : parameters);
        EXPECT_EQ(stage.remote.parameters, offload.parameters ? parameters : 0);
        EXPECT_EQ(stage.local.optimizer, offload.optimizer ? 0 : optimizer);
        EXPECT_EQ(stage.remote.optimizer, offload.optimizer ? optimizer : 0);
        const bool adds_up = zero < 2 && micro_batches > 1;
        EXPECT_EQ(stage.local.gradients, offload.gradients && !adds_up ? 0 : 2 * (zero >= 2 ? share : all));
        EXPECT_EQ(stage.remote.gradients, offload.gradients ? 2 * (zero >= 1 ? share : all) : 0);
      }
}

/// The nodes of one NPU by name, with what they depend on.
class Nodes {
 public:
  explicit Nodes(const Description& description) : made_(description) {
    const auto& trace = made_.traces()[0];
    const auto& graph = *trace.graph;
    before_.resize(graph.num_nodes());
    for (std::uint32_t i = 0; i < graph.num_nodes(); ++i) {
      names_.push_back(made_.name(trace, i));
      EXPECT_TRUE(ids_.emplace(names_.back(), i).second) << names_.back();
    }
    for (const std::uint32_t i : graph.topological_order())
      for (const std::uint32_t next : graph.successors_of(NodeId(i))) {
        direct_[next].insert(i);
        before_[next].insert(i);
        before_[next].insert(before_[i].begin(), before_[i].end());
      }
  }

  bool has(const std::string& name) const { return ids_.contains(name); }
  const trace::Node& node(const std::string& name) const { return made_.traces()[0].graph->nodes[ids_.at(name)]; }
  Time duration(const std::string& name) const { return made_.traces()[0].graph->duration_of(NodeId(ids_.at(name))); }
  /// Whether `late` waits for `early`, maybe by way of others.
  bool waits(const std::string& late, const std::string& early) const {
    return before_[ids_.at(late)].contains(ids_.at(early));
  }
  std::set<std::string> direct(const std::string& name) const {
    std::set<std::string> names;
    if (const auto found = direct_.find(ids_.at(name)); found != direct_.end())
      for (const std::uint32_t i : found->second) names.insert(names_[i]);
    return names;
  }
  std::vector<std::string> with(const std::string& start, const std::string& end) const {
    std::vector<std::string> found;
    std::ranges::copy_if(names_, std::back_inserter(found),
                         [&](const auto& name) { return name.starts_with(start) && name.ends_with(end); });
    return found;
  }

 private:
  Assembled made_;
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t> ids_;
  std::map<std::uint32_t, std::set<std::uint32_t>> direct_;
  std::vector<std::set<std::uint32_t>> before_;
};

/// The visits of a step without a pipeline and with one micro-batch, in their order.
std::vector<std::string> visits() {
  std::vector<std::string> names;
  for (std::uint64_t k = 0; k < num_layers; ++k) names.push_back("forward.micro_batch_0.layer_" + std::to_string(k));
  for (std::uint64_t k = num_layers; k > 0; --k)
    names.push_back("backward.micro_batch_0.layer_" + std::to_string(k - 1));
  return names;
}

/// Times are given, so that a visit is one compute node.
Description timed_copies() {
  LayerList list;
  for (std::uint64_t k = 0; k < num_layers; ++k)
    list.layers.push_back({.name = "layer_" + std::to_string(k),
                           .parameters = layer_parameters,
                           .forward = Time::from_ps(1000),
                           .backward = Time::from_ps(2000),
                           .update = Time::from_ps(500)});
  Description description{list, {}};
  description.parallel[Axis::dp] = num_copies;
  description.parallel.sharding.zero = 3;
  return description;
}

TEST(Offload, LoadsRunAhead) {
  // ZeRO 3 with offloaded parameters: a load must wait for the layer pass `prefetch` + 1 before its own and for the
  // load before it, its all-gather for the load, and its layer pass for the all-gather.
  for (const std::uint32_t prefetch : {0U, 1U, 3U}) {
    Description description = timed_copies();
    description.parallel.sharding.offload.parameters = true;
    description.parallel.sharding.prefetch = prefetch;
    const Nodes nodes(description);
    const auto all = visits();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string work = all[i] + (i < num_layers ? ".forward" : ".backward");
      const auto ended = [&](std::size_t v) { return all[v] + (v < num_layers ? ".forward" : ".backward"); };
      std::set<std::string> load, gather{all[i] + ".parameters.load"}, visit{all[i] + ".parameters.all_gather"};
      if (i > 0) {
        load.insert(all[i - 1] + ".parameters.load");
        visit.insert(ended(i - 1));
      }
      if (i > prefetch) load.insert(ended(i - 1 - prefetch));
      EXPECT_EQ(nodes.direct(all[i] + ".parameters.load"), load);
      auto found = nodes.direct(all[i] + ".parameters.all_gather");
      std::erase_if(found, [](const auto& name) { return name.ends_with("all_gather") || name.ends_with("scatter"); });
      EXPECT_EQ(found, gather);
      auto awaited = nodes.direct(work);
      std::erase_if(awaited, [](const auto& name) { return name.ends_with("reduce_scatter"); });
      EXPECT_EQ(awaited, visit);
    }
  }
}

TEST(Calls, AreMadeOneAfterTheOther) {
  // ZeRO 3 that calls two collectives for each layer, without prefetching and overlap: each waits for the host, whose
  // time is that of the call and of four members, and the host for the collective before it; the pass waits for the
  // last one. The parts have all bytes, also where a byte is left over.
  Description description = timed_copies();
  auto& sharding = description.parallel.sharding;
  sharding.prefetch = 0;
  sharding.overlap = false;
  sharding.calls = {.of_layer = 2, .each = Time::from_ps(1000), .of_member = Time::from_ps(10)};
  const Nodes nodes(description);
  const std::string pass = "forward.micro_batch_0.layer_1", gather = pass + ".parameters.all_gather";
  const std::string sum = "gradient.micro_batch_0.layer_1.reduce_scatter";
  EXPECT_EQ(nodes.direct(gather + ".0.call"), (std::set<std::string>{"forward.micro_batch_0.layer_0.forward"}));
  EXPECT_EQ(nodes.direct(gather + ".1.call"), (std::set<std::string>{gather + ".0"}));
  EXPECT_TRUE(nodes.direct(gather + ".1").contains(gather + ".1.call"));
  EXPECT_TRUE(nodes.direct(pass + ".forward").contains(gather + ".1"));
  EXPECT_EQ(nodes.direct(sum + ".0.call"), (std::set<std::string>{"backward.micro_batch_0.layer_1.backward"}));
  EXPECT_TRUE(nodes.direct("backward.micro_batch_0.layer_0.backward").contains(sum + ".1"));
  EXPECT_EQ(nodes.duration(gather + ".0.call"), Time::from_ps(1000 + 4 * 10));
  const std::uint64_t share = 2 * (layer_parameters / num_copies);
  EXPECT_EQ(nodes.node(gather + ".0").size + nodes.node(gather + ".1").size, share);
  EXPECT_EQ(nodes.node(sum + ".0").size, layer_parameters);
  sharding.calls.of_layer = 3;
  const Nodes thirds(description);
  EXPECT_EQ(thirds.node(sum + ".0").size + thirds.node(sum + ".1").size + thirds.node(sum + ".2").size,
            2 * layer_parameters);
  sharding.calls.of_layer = 0;
  EXPECT_THROW(description.parallel.validate(), Error);
}

TEST(Calls, AreOfZero3Only) {
  // With ZeRO 2 and on a single NPU nothing is called.
  for (const auto& [zero, dp] : {std::pair(2U, 4U), std::pair(3U, 1U)}) {
    Description description = timed_copies();
    description.parallel[Axis::dp] = dp;
    description.parallel.sharding.zero = zero;
    description.parallel.sharding.calls = {.of_layer = 2, .each = Time::from_ps(1000)};
    EXPECT_TRUE(Nodes(description).with("", ".call").empty()) << zero;
  }
}

TEST(Buckets, PassesWaitForAFreeBuffer) {
  // ZeRO 2 and 3: a pass must wait for the reduction of the layer `buffers` before its own, and directly for no other
  // one. Without overlap there is one buffer; none is counted with 0.
  for (const std::uint32_t zero : {2U, 3U})
    for (const bool overlap : {false, true})
      for (const std::uint32_t asked : {0U, 1U, 2U, 3U}) {
        Description description = timed_copies();
        description.parallel.sharding.zero = zero;
        description.parallel.sharding.overlap = overlap;
        description.parallel.sharding.bucket_buffers = asked;
        const std::uint64_t buffers = !overlap ? 1 : asked == 0 ? num_layers : asked;
        const Nodes nodes(description);
        for (std::uint64_t k = 0; k < num_layers; ++k) {
          const auto of_layer = [](std::uint64_t layer) { return "layer_" + std::to_string(layer); };
          const std::string pass = "backward.micro_batch_0." + of_layer(k);
          for (std::uint64_t sum = k + 1; sum < num_layers; ++sum) {
            const std::string reduction = "gradient.micro_batch_0." + of_layer(sum) + ".reduce_scatter";
            if (sum >= k + buffers) {
              EXPECT_TRUE(nodes.waits(pass + ".backward", reduction));
            }
            EXPECT_EQ(nodes.direct(pass + ".backward").count(reduction), sum == k + buffers ? 1U : 0U);
          }
        }
      }
}

TEST(Offload, WithoutOverlapGradientsAreStoredAfterThePasses) {
  // Offloaded gradients with every stage of ZeRO, with and without the path: a store must wait for the last pass only
  // if `overlap` is false. With ZeRO 2 and 3 the last pass must then wait for what frees the buffer of gradients: the
  // store or the reduction.
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U})
    for (const bool on_path : {false, true}) {
      Description description = timed_copies();
      auto& parallel = description.parallel;
      parallel.sharding.zero = zero;
      parallel.sharding.offload = {.gradients = true, .on_path = on_path};
      const std::string early = "backward.micro_batch_0.layer_1.backward",
                        last = "backward.micro_batch_0.layer_0.backward";
      for (const bool overlap : {true, false}) {
        parallel.sharding.overlap = overlap;
        const Nodes nodes(description);
        const auto stores = nodes.with("gradient.", "layer_1.store");
        ASSERT_EQ(stores.size(), 1U);
        EXPECT_TRUE(nodes.waits(stores[0], early));
        EXPECT_EQ(nodes.waits(stores[0], last), !overlap && zero < 2);
        const std::string frees = on_path ? stores[0] : "gradient.micro_batch_0.layer_1.reduce_scatter";
        if (zero >= 2) {
          EXPECT_EQ(nodes.waits(last, frees), !overlap);
        }
      }
    }
}

TEST(Offload, TheUpdateGoesLayerByLayer) {
  // ZeRO 2 with everything offloaded: all gradients must be stored first; then each layer is loaded, updated, stored
  // and gathered, with loads `prefetch` layers ahead.
  for (const std::uint32_t prefetch : {0U, 1U, 2U}) {
    Description description = timed_copies();
    auto& parallel = description.parallel;
    parallel.sharding.zero = 2;
    parallel.sharding.prefetch = prefetch;
    parallel.sharding.offload = {.parameters = true, .gradients = true, .optimizer = true};
    const Nodes nodes(description);
    EXPECT_FALSE(nodes.has("optimizer"));
    for (std::uint64_t k = 0; k < num_layers; ++k) {
      const std::string layer = "layer_" + std::to_string(k), update = "optimizer." + layer;
      for (const std::string& store : nodes.with("gradient.", ".store"))
        EXPECT_TRUE(nodes.waits(update + ".gradients.load", store));
      EXPECT_EQ(nodes.direct(update), (std::set{update + ".gradients.load", update + ".state.load"}));
      for (std::uint64_t other = 0; other < k; ++other)
        EXPECT_EQ(nodes.waits(update + ".gradients.load", "optimizer.layer_" + std::to_string(other)),
                  other + prefetch < k);
      EXPECT_TRUE(nodes.direct(update + ".state.store").contains(update));
      const std::string gather = "parameters." + layer + ".all_gather";
      EXPECT_TRUE(nodes.direct(gather).contains(update));
      EXPECT_TRUE(nodes.direct("parameters." + layer + ".store").contains(gather));
    }
  }
}

TEST(Offload, AnythingOffloadedDividesTheUpdate) {
  // One offloaded state after the other: the optimizer must be one node if all is local, and one for each layer as
  // soon as anything is offloaded.
  Description description = timed_copies();
  EXPECT_TRUE(Nodes(description).has("optimizer"));
  for (bool Offload::*state : {&Offload::parameters, &Offload::gradients, &Offload::optimizer}) {
    description.parallel.sharding.offload = {};
    description.parallel.sharding.offload.*state = true;
    const Nodes nodes(description);
    EXPECT_FALSE(nodes.has("optimizer"));
    EXPECT_TRUE(nodes.has("optimizer.layer_3"));
  }
}

TEST(Offload, OnThePathAccessesReplaceCollectives) {
  // ZeRO 3 with parameters and gradients on the path: one access of the whole group must replace a load and its
  // all-gather, and a reduce-scatter and its store.
  Description description = timed_copies();
  description.parallel.sharding.offload = {.parameters = true, .gradients = true, .on_path = true};
  const Nodes nodes(description);
  EXPECT_TRUE(nodes.with("", "all_gather").empty());
  EXPECT_TRUE(nodes.with("", "reduce_scatter").empty());
  std::string last;
  for (const std::string& visit : visits()) {
    const auto& load = nodes.node(visit + ".parameters.load");
    EXPECT_TRUE(load.is_of_group());
    EXPECT_EQ(load.size, layer_parameters * 2);
    EXPECT_TRUE(last.empty() || nodes.waits(visit + ".parameters.load", last)) << visit;
    last = visit + ".parameters.load";
  }
  for (const std::string& store : nodes.with("gradient.", ".store")) {
    EXPECT_TRUE(nodes.node(store).is_of_group());
    EXPECT_EQ(nodes.node(store).collective, trace::CollectiveKind::reduce_scatter);
  }
  EXPECT_FALSE(nodes.node("optimizer.layer_0.gradients.load").is_of_group());
  EXPECT_FALSE(nodes.node("parameters.layer_0.store").is_of_group());
}

TEST(Offload, AGroupOfOneMovesEverythingAlone) {
  // Experts on ep 4 with dp 1, which have no copies: their states must be moved by accesses of the NPU alone, those
  // of the rest by accesses of the group.
  Description description{Transformer{.layers = 2,
                                      .hidden = 64,
                                      .sequence = 32,
                                      .attention = {.heads = 4},
                                      .mlp = {.width = 96, .gated = true, .experts = 8, .top_k = 2}},
                          {}};
  auto& parallel = description.parallel;
  parallel.sizes = {1, 1, 4, 1, 1};
  parallel.sharding.zero = 3;
  parallel.sharding.offload = {.parameters = true, .gradients = true, .on_path = true};
  const std::uint64_t experts = 2 * 3 * 64 * 96, dense = 4 * 64 * 64 + 2 * 64 + 64 * 8;
  auto found = figures(description).stages[0].communication;
  found.erase("all-to-all ep");
  const std::uint64_t own = experts + dense / 4;
  EXPECT_EQ(found, (Kinds{{"load with all-gather dp", {4, 4 * dense * 2}},
                          {"store with reduce-scatter dp", {2, 2 * dense * 2}},
                          {"load", {4 + 2, 4 * experts * 2 + 2 * own * 2}},
                          {"store", {2 + 4, 2 * experts * 2 + 2 * own * 2}}}));
}

TEST(Offload, TheGradientOfATiedEmbeddingIsReducedFromMemory) {
  // A tied embedding on two stages with offloaded gradients: shares of its gradient must be loaded, reduced with the
  // other stage and stored, before the update loads them.
  Description description{Transformer{.layers = 2,
                                      .hidden = 64,
                                      .sequence = 32,
                                      .attention = {.heads = 4},
                                      .embedding = {.vocabulary = 512, .tied = true}},
                          {}};
  description.parallel.sizes = {1, 1, 1, 2, 2};
  description.parallel.sharding.zero = 1;
  for (const bool on_path : {false, true}) {
    description.parallel.sharding.offload = {.gradients = true, .on_path = on_path};
    const Nodes nodes(description);
    const std::string tied = "gradient.embedding.tied.";
    EXPECT_EQ(nodes.node(tied + "load").size, 512 * 64 / 2 * 2U);
    EXPECT_TRUE(nodes.waits(tied + "load", "gradient.embedding.store"));
    EXPECT_TRUE(nodes.direct(tied + "all_reduce").contains(tied + "load"));
    EXPECT_TRUE(nodes.direct(tied + "store").contains(tied + "all_reduce"));
    EXPECT_TRUE(nodes.waits("optimizer.embedding.gradients.load", tied + "store"));
  }
}

TEST(Offload, TablesStayLocal) {
  // A DLRM with everything offloaded: its tables must be in local memory.
  Description description{
      Dlrm{.dense_features = 13, .bottom = {32, 16}, .tables = {{1000}, {50}, {7}}, .pooling = 2, .top = {32, 1}}, {}};
  description.parallel.sizes = {1, 1, 1, 4, 1};
  description.parallel.sharding.offload = {.parameters = true, .gradients = true, .optimizer = true};
  const std::uint64_t mlps = 14 * 32 + 33 * 16 + (16 + 6 + 1) * 32 + 33;
  const auto stage = figures(description).stages[0];
  EXPECT_EQ(stage.local.parameters, 2 * 1057 * 16 / 4);
  EXPECT_EQ(stage.remote.parameters, 2 * mlps);
  EXPECT_EQ(stage.communication.at("load"), (CommunicationTotal{4 + 2 + 2, (4 / 2 * 2 + 2 + 12) * mlps}));
}

TEST(Offload, APathWithoutCollectivesIsRefused) {
  // Offload on the path where nothing is moved by a collective: the description must be refused with its key.
  for (const Offload& offload : {Offload{.on_path = true}, Offload{.optimizer = true, .on_path = true},
                                 Offload{.parameters = true, .on_path = true}}) {
    Description description = four_copies();
    description.parallel.sharding.zero = 2;
    description.parallel.sharding.offload = offload;
    try {
      description.validate();
      ADD_FAILURE() << "taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("workload.parallel.offload-collectives"), std::string::npos);
    }
  }
}

TEST(Offload, TheReportNamesRemoteMemory) {
  // ZeRO 3 with offloaded parameters and optimizer: the report must name local and remote memory apart.
  Description description = four_copies();
  description.parallel.sharding.zero = 3;
  description.parallel.sharding.offload = {.parameters = true, .optimizer = true};
  const auto text = report(description, figures(description));
  EXPECT_NE(text.find("parameters 0 B, gradients 98.56 kB, optimizer 0 B, activations"), std::string::npos) << text;
  EXPECT_NE(text.find("remote memory of it: parameters 98.56 kB, gradients 0 B, optimizer 591.36 kB: 689.92 kB\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace orrery::workload
