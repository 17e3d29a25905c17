#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "assembled.hpp"
#include "orrery/base/error.hpp"
#include "orrery/workload/figures.hpp"
#include "random_description.hpp"

namespace orrery::workload {
namespace {

/// One tensor of an NPU and the nodes that list it, in the order of ids.
struct Tensor {
  std::uint64_t bytes = 0;
  std::vector<std::uint32_t> nodes;
  std::vector<trace::Listing> listings;

  bool is_kept() const { return nodes.size() == 1 && listings[0].needs == 1 && listings[0].makes == 1; }
};
using Tensors = std::map<std::string, Tensor>;

Tensors tensors_of(const Assembled& made, std::uint32_t npu) {
  const auto& trace = made.traces()[npu];
  const auto& graph = *trace.graph;
  Tensors tensors;
  for (std::uint32_t i = 0; i < graph.num_nodes(); ++i)
    for (const trace::Listing listing : graph.tensors.of(NodeId(i))) {
      auto& tensor = tensors[std::string(made.store().name(trace.labels->tensors[listing.tensor]))];
      tensor.bytes = graph.tensors.sizes[listing.tensor];
      tensor.nodes.push_back(i);
      tensor.listings.push_back(listing);
    }
  return tensors;
}

/// Bytes of those whose name begins so.
std::uint64_t bytes_of(const Tensors& tensors, std::string_view start) {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(start)) bytes += tensor.bytes;
  return bytes;
}

/// The largest sum over the nodes in the order of ids, one after the other, of those whose name begins so.
std::uint64_t peak_of(const Tensors& tensors, std::string_view start) {
  std::map<std::uint32_t, std::int64_t> changes;
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(start)) continue;
    changes[tensor.nodes.front()] += static_cast<std::int64_t>(tensor.bytes);
    changes[tensor.nodes.back() + 1] -= static_cast<std::int64_t>(tensor.bytes);
  }
  std::int64_t sum = 0, peak = 0;
  for (const auto& [node, change] : changes) peak = std::max(peak, sum += change);
  return static_cast<std::uint64_t>(peak);
}

/// Whether each node comes after the one before it, by dependencies.
bool are_ordered(const trace::Graph& graph, const std::vector<std::uint32_t>& nodes) {
  for (std::size_t k = 1; k < nodes.size(); ++k) {
    std::set<std::uint32_t> reached{nodes[k - 1]};
    for (const std::uint32_t node : graph.topological_order())
      if (reached.contains(node))
        for (const std::uint32_t next : graph.successors_of(NodeId(node))) reached.insert(next);
    if (!reached.contains(nodes[k])) return false;
  }
  return true;
}

TEST(Tensors, AreThereFromTheirMakerToTheirLastNeed) {
  // Random descriptions: a tensor must be kept throughout the step, or be listed by the node that makes it and by one
  // that needs it and waits for the other. So times do not matter for when it comes and goes.
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    const Description description = random_description(seed);
    const Assembled made(description);
    const auto& trace = made.traces()[0];
    const auto tensors = tensors_of(made, 0);
    EXPECT_FALSE(tensors.empty());
    for (const auto& [name, tensor] : tensors) {
      SCOPED_TRACE(name);
      if (tensor.is_kept()) {
        EXPECT_TRUE(name == "parameters" || name == "gradients" || name == "optimizer");
        continue;
      }
      ASSERT_EQ(tensor.listings.size(), 2U);
      EXPECT_TRUE(tensor.listings[0].makes == 1 && tensor.listings[0].needs == 0);
      EXPECT_TRUE(tensor.listings[1].makes == 0 && tensor.listings[1].needs == 1);
      EXPECT_TRUE(seed >= 12 || are_ordered(*trace.graph, tensor.nodes));
    }
  }
}

TEST(Tensors, AreWhatTheFiguresSay) {
  // Random descriptions: the tensors that are kept, and the peak of activations, must be those of the figures of some
  // stage, on every NPU looked at.
  int compared = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    const Description description = random_description(seed);
    const Assembled made(description);
    const auto all = figures(description);
    const auto num_npus = static_cast<std::uint32_t>(made.traces().size());
    for (std::uint32_t npu = 0; npu < num_npus; npu += std::max(1U, num_npus / 4)) {
      const auto tensors = tensors_of(made, npu);
      const auto kept = [&](const std::string& name) {
        return tensors.contains(name) ? tensors.at(name).bytes : std::uint64_t{0};
      };
      const bool fits = std::ranges::any_of(all.stages, [&](const StageFigures& stage) {
        return kept("parameters") == stage.local.parameters && kept("gradients") == stage.local.gradients &&
               kept("optimizer") == stage.local.optimizer &&
               peak_of(tensors, "activations.") == stage.local.activations;
      });
      EXPECT_TRUE(fits) << "NPU " << npu;
      ++compared;
    }
  }
  EXPECT_GT(compared, 400);
}

Description four_layers() {
  Description description{Transformer{.layers = 4, .hidden = 64, .sequence = 32, .attention = {.heads = 4}}, {}};
  description.parallel.sizes = {1, 1, 1, 4, 1};
  description.parallel.micro_batches = 2;
  return description;
}
constexpr std::uint64_t bytes_of_layer = 2 * (12 * 64 * 64 + 2 * 64);

TEST(Tensors, OfParametersAreAheadByPrefetch) {
  // ZeRO 3 with parameters gathered, loaded, or both: with `prefetch` layers ahead there must be prefetch + 1 layers
  // at a time.
  Description description = four_layers();
  auto& parallel = description.parallel;
  for (const std::uint32_t prefetch : {0U, 1U, 2U})
    for (const bool is_loaded : {false, true})
      for (const bool on_path : {false, true}) {
        if (on_path && !is_loaded) continue;
        parallel.sharding.zero = 3;
        parallel.sharding.prefetch = prefetch;
        parallel.sharding.offload = {.parameters = is_loaded, .on_path = on_path};
        const auto tensors = tensors_of(Assembled(description), 0);
        EXPECT_EQ(bytes_of(tensors, "forward.micro_batch_1.layer_2.parameters.all"), bytes_of_layer);
        EXPECT_EQ(bytes_of(tensors, "forward.micro_batch_1.layer_2.parameters.share"),
                  is_loaded && !on_path ? bytes_of_layer / 4 : 0);
        // In the order of ids a gather for a later pass stands before the pass that it runs beside.
        const auto peak = peak_of(tensors, "forward.");
        EXPECT_GE(peak, (prefetch + 1) * bytes_of_layer);
        EXPECT_LE(peak, (prefetch + 1) * bytes_of_layer + bytes_of_layer / 4);
      }
}

TEST(Tensors, OfGradientsStayUntilTheyAreReduced) {
  // Every stage of ZeRO, one and two micro-batches, with and without offload: gradients that are divided or offloaded
  // must be listed with the bytes of every reduction and of the shares that are stored; all others must be kept for
  // the whole step.
  for (const std::uint32_t zero : {0U, 1U, 2U, 3U})
    for (const std::uint32_t micro_batches : {1U, 2U})
      for (const bool is_offloaded : {false, true})
        for (const bool on_path : {false, true}) {
          if (on_path && !is_offloaded) continue;
          Description description = four_layers();
          description.parallel.sharding.zero = zero;
          description.parallel.micro_batches = micro_batches;
          description.parallel.sharding.offload = {.gradients = is_offloaded, .on_path = on_path};
          const auto tensors = tensors_of(Assembled(description), 0);
          const bool passes = zero >= 2 || (is_offloaded && micro_batches == 1);
          const std::uint64_t sums = zero >= 2 ? micro_batches : 1;
          const bool stores_shares = is_offloaded && zero > 0 && !on_path;
          EXPECT_EQ(bytes_of(tensors, "gradient."),
                    passes ? 4 * sums * (bytes_of_layer + (stores_shares ? bytes_of_layer / 4 : 0)) : 0);
          EXPECT_EQ(tensors.contains("gradients"), !(is_offloaded && passes));
        }
}

TEST(Tensors, OfAnOffloadedUpdateComeAndGo) {
  // Everything offloaded with ZeRO 0, 1 and 3: the update of a layer must list gradients, state and parameters of the
  // NPU's share; with ZeRO 1 also the gathered parameters that it stores.
  Description description = four_layers();
  auto& parallel = description.parallel;
  parallel.sharding.offload = {.parameters = true, .gradients = true, .optimizer = true};
  for (const std::uint32_t zero : {0U, 1U, 3U}) {
    parallel.sharding.zero = zero;
    const std::uint64_t own = bytes_of_layer / (zero >= 1 ? 4 : 1);
    const auto tensors = tensors_of(Assembled(description), 0);
    EXPECT_EQ(bytes_of(tensors, "optimizer.layer_2.gradients"), own);
    EXPECT_EQ(bytes_of(tensors, "optimizer.layer_2.state"), 6 * own);
    EXPECT_EQ(bytes_of(tensors, "optimizer.layer_2.parameters"), own);
    EXPECT_EQ(bytes_of(tensors, "parameters.layer_2"), zero == 1 ? bytes_of_layer : 0);
  }
}

TEST(Tensors, OfRecomputationAreMadeAgain) {
  // Full recomputation (Korthikanti et al., 2022): a layer must keep its input alone. What is computed again must be
  // the rest of its activations, of one layer at a time.
  Description description = four_layers();
  const auto kept = tensors_of(Assembled(description), 0);
  description.parallel.recompute = Recompute::full;
  const auto tensors = tensors_of(Assembled(description), 0);
  EXPECT_EQ(bytes_of(tensors, "activations.micro_batch_1.layer_3"), 2 * 32 * 64U);
  EXPECT_EQ(bytes_of(tensors, "activations.") + bytes_of(tensors, "recomputed."), bytes_of(kept, "activations."));
  EXPECT_EQ(peak_of(tensors, "recomputed."), tensors.at("recomputed.micro_batch_1.layer_3").bytes);
}

TEST(Tensors, OfMessagesStayUntilTheyAreUsed) {
  // The second of two stages: the activations that it receives and the gradients that it sends must be listed with
  // the bytes of the messages.
  Description description = four_layers();
  description.parallel.sizes = {1, 1, 1, 1, 2};
  const auto tensors = tensors_of(Assembled(description), 1);
  for (const char* name : {"receive.forward.micro_batch_0", "send.backward.micro_batch_1"})
    EXPECT_EQ(bytes_of(tensors, name), 2 * 32 * 64U) << name;
  EXPECT_EQ(bytes_of(tensors, "receive."), 2 * 2 * 32 * 64U);
}

TEST(Tensors, OfLayersWithOneNameAreApart) {
  // Four layers of one name, whose inputs have 0, 4096, 100 and 100 values of 2 bytes: the activations must be those
  // that the figures say, 8592 bytes.
  LayerList list;
  for (const std::uint64_t values : {4096, 100, 100, 7})
    list.layers.push_back({.name = "layer", .parameters = 4, .flops = 1000, .activations = values});
  const Description description{list, {}};
  const auto tensors = tensors_of(Assembled(description), 0);
  EXPECT_EQ(peak_of(tensors, "activations."), 8592U);
  EXPECT_EQ(peak_of(tensors, "activations."), figures(description).stages.front().local.activations);
}

TEST(Tensors, AreRefusedIfTheyCannotBeCounted) {
  // Two layers with 2^54 activations each: 100 micro-batches must be taken; 600, whose tensors exceed 8 EiB in all,
  // must be refused.
  LayerList list;
  for (const char* name : {"first", "second"})
    list.layers.push_back({.name = name, .flops = 1, .activations = std::uint64_t{1} << 54U});
  Description description{list, {}};
  description.parallel.pipeline.schedule = Schedule::gpipe;
  description.parallel.micro_batches = 100;
  EXPECT_NO_THROW(figures(description));
  description.parallel.micro_batches = 600;
  try {
    figures(description);
    ADD_FAILURE() << "taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("exceed 8 EiB"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace orrery::workload
