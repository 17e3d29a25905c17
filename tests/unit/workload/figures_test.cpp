#include "orrery/workload/figures.hpp"

#include <gtest/gtest.h>

#include "orrery/base/error.hpp"

namespace orrery::workload {
namespace {

Description gpt3() {
  return {Transformer{.layers = 96,
                      .hidden = 12288,
                      .sequence = 2048,
                      .attention = {.heads = 96, .fused = false},
                      .embedding = {.vocabulary = 51200, .learned_positions = true, .tied = true},
                      .biases = true,
                      .dropout = true},
          {}};
}

TEST(Figures, ParametersOfGptAreAsPublished) {
  // GPT-3 175B: the parameters must be those of Narayanan et al. (2021), equation 2, P = 12 l h^2 (1 + 13 / 12h + (V
  // + s) / 12lh), and the 2 h of the final norm.
  const double l = 96, h = 12288, s = 2048, V = 51200;
  EXPECT_DOUBLE_EQ(static_cast<double>(figures(gpt3()).parameters),
                   12 * l * h * h * (1 + 13 / (12 * h) + (V + s) / (12 * l * h)) + 2 * h);
}

TEST(Figures, FlopsOfGptAreAsPublished) {
  // GPT-3 175B with tp 8 and pp 8: the FLOPs of a step must be those of the same paper's appendix, 72 B s l h^2 (1 +
  // s / 6h + V / 12lh), without recomputation, if all scores are computed. A mask leaves out half of them.
  Description description = gpt3();
  description.parallel.sizes = {8, 1, 1, 1, 8};
  description.parallel.micro_batches = 64;
  const double B = 64, l = 96, h = 12288, s = 2048, V = 51200;
  for (const bool is_causal : {false, true}) {
    std::get<Transformer>(description.model).attention.causal = is_causal;
    const double expected = 72 * B * s * l * h * h * (1 + s / ((is_causal ? 12 : 6) * h) + V / (12 * l * h));
    EXPECT_NEAR(figures(description).model_flops / expected, 1, 1e-4);  // the embedding's sums
  }
}

TEST(Figures, FlopsOfLatentAttentionAndSharedExpertsByHand) {
  // One dense layer and one with experts, on one NPU. For a token: attention takes products of 64 x 88, 48 x 96, 32 x
  // 128 and 64 x 64, and a core of 32 x (96 + 64), of which the mask leaves out half; the dense MLP three of 64 x 128;
  // the router 64 x 8, and two experts and a shared one three of 64 x 32 each. The backward pass takes twice that.
  const Description description{Transformer{.layers = 2,
                                            .hidden = 64,
                                            .sequence = 32,
                                            .attention = {.heads = 4, .head_size = 16},
                                            .latent = {.key_value = 32, .query = 48, .rotary = 8, .value = 16},
                                            .mlp = {.width = 32,
                                                    .gated = true,
                                                    .experts = 8,
                                                    .top_k = 2,
                                                    .shared_experts = 1,
                                                    .dense_layers = 1,
                                                    .dense_width = 128}},
                                {}};
  const std::uint64_t attention = 64 * 88 + 48 * 96 + 32 * 128 + 64 * 64, core = 32 * (96 + 64) / 2;
  const std::uint64_t dense = 3 * 64 * 128, expert = 3 * 64 * 32;
  const std::uint64_t forward = 2 * (attention + core) + dense + 64 * 8 + 3 * expert;
  EXPECT_DOUBLE_EQ(figures(description).model_flops, static_cast<double>(3 * 2 * 32 * forward));
  const std::uint64_t norms = 2 * 2 * 64 + 2 * (48 + 32);
  EXPECT_EQ(figures(description).parameters, 2 * attention + dense + 64 * 8 + 9 * expert + norms);
}

TEST(Figures, CrossLayersOfDlrmByHand) {
  // Two tables of 10 rows of 4 values, of which a sample reads 3 and 1; two cross layers of rank 2 on 12 values.
  // Forward, for a sample: lookups add up 16 values; MLPs have products of 2 x 4 and 12 x 1; each cross layer has 12 x
  // 2 twice.
  Dlrm model{.dense_features = 2, .bottom = {4}, .tables = {{10}, {10}}, .top = {1}};
  model.poolings = {3, 1};
  model.cross_layers = 2;
  model.cross_rank = 2;
  const Figures all = figures({model, {}});
  EXPECT_EQ(all.parameters, 2 * 10 * 4 + (2 + 1) * 4 + (12 + 1) * 1 + 2 * 12 * (2 * 2 + 1));
  EXPECT_DOUBLE_EQ(all.model_flops, 3.0 * (16 + 2 * (2 * 4 + 12 * 1 + 2 * 2 * 12 * 2)));
}

TEST(Figures, FlopsOfTrainingRunsAreAsPublished) {
  // GPT-3 took 3.14e23 FLOPs for 300 G tokens (Brown et al., 2020, table D.1), Llama 3 405B took 3.8e25 for 15.6 T
  // (Llama Team, 2024, section 3.4). These counts have 6 FLOPs for a parameter and token and leave attention out, 6 L
  // q s for a token with a mask: ours less attention must be within 1 %.
  const auto per_token = [](const Description& description) {
    const auto& model = std::get<Transformer>(description.model);
    const Figures all = figures(description);
    return all.model_flops / static_cast<double>(all.tokens) -
           6.0 * model.layers * static_cast<double>(model.query_width() * model.sequence);
  };
  EXPECT_NEAR(per_token(gpt3()) / (3.14e23 / 300e9), 1, 0.01);
  const Description llama{Transformer{.layers = 126,
                                      .hidden = 16384,
                                      .sequence = 8192,
                                      .attention = {.heads = 128, .kv_heads = 8},
                                      .mlp = {.width = 53248, .gated = true},
                                      .embedding = {.vocabulary = 128256}},
                          {}};
  EXPECT_NEAR(per_token(llama) / (3.8e25 / 15.6e12), 1, 0.01);
}

TEST(Figures, ZeroDividesModelStates) {
  // A transformer on 4 copies: model states must take 16 bytes for a parameter, of which ZeRO divides 12 from stage 1
  // on, 2 more with stage 2, and all with stage 3 (Rajbhandari et al., 2020, figure 1).
  Description description{Transformer{.layers = 4, .hidden = 64, .sequence = 32, .attention = {.heads = 4}}, {}};
  description.parallel.sizes = {1, 1, 1, 4, 1};
  const std::uint64_t parameters = 4 * (12 * 64 * 64 + 2 * 64);
  ASSERT_EQ(figures(description).parameters, parameters);
  const auto bytes = [&](std::uint32_t zero) {
    description.parallel.sharding.zero = zero;
    const MemoryUse memory = figures(description).stages[0].local;
    return memory.parameters + memory.gradients + memory.optimizer;
  };
  EXPECT_EQ(bytes(0), 16 * parameters);
  EXPECT_EQ(bytes(1), (2 + 2 + 3) * parameters);
  EXPECT_EQ(bytes(2), 2 * parameters + 14 * parameters / 4);
  EXPECT_EQ(bytes(3), 16 * parameters / 4);
  description.parallel.sharding.replicas = 2;
  EXPECT_EQ(bytes(3), 16 * parameters / 2);
}

TEST(Figures, ActivationsOfALayerAreAsPublished) {
  // One layer with tp t: activations must be those of Korthikanti et al. (2022), table 2: s b h (10 + 24 / t + 5 a s
  // / h t) bytes without sequence parallelism, s b h / t (34 + 5 a s / h) with it, 34 s b h / t with selective
  // recomputation, and 2 s b h with full recomputation and no sequence parallelism.
  const std::uint64_t s = 64, b = 2, h = 128, a = 8, t = 4;
  Description description{Transformer{.layers = 1,
                                      .hidden = h,
                                      .sequence = s,
                                      .attention = {.heads = a, .fused = false},
                                      .biases = true,
                                      .dropout = true},
                          {}};
  auto& parallel = description.parallel;
  parallel.sizes = {t, 1, 1, 1, 1};
  parallel.micro_batch = b;
  const auto bytes = [&] { return figures(description).stages[0].local.activations; };
  EXPECT_EQ(bytes(), s * b * h * 10 + s * b * h * 24 / t + 5 * a * s * s * b / t);
  parallel.sequence_parallel = true;
  EXPECT_EQ(bytes(), s * b * h * 34 / t + 5 * a * s * s * b / t);
  parallel.recompute = Recompute::selective;
  EXPECT_EQ(bytes(), s * b * h * 34 / t);
  parallel.recompute = Recompute::full;
  parallel.sequence_parallel = false;
  EXPECT_EQ(bytes(), 2 * s * b * h);
}

TEST(Figures, ActivationsOfAPipelineDependOnTheSchedule) {
  // 8 layers on 4 stages: 1F1B must keep pp - p micro-batches on stage p; the interleaved first stage 1 + (pp - 1) /
  // (pp v) times as much (Korthikanti et al., section 4.2.3); GPipe all of them.
  Description description{Transformer{.layers = 8, .hidden = 64, .sequence = 32, .attention = {.heads = 4}}, {}};
  auto& parallel = description.parallel;
  parallel.micro_batches = 8;
  const auto layers = figures(description).stages[0].local.activations / 8;  // of one
  parallel[Axis::pp] = 4;
  const auto kept = [&](std::uint32_t stage) { return figures(description).stages[stage].local.activations / layers; };
  EXPECT_EQ(kept(0), 4U * 2);
  EXPECT_EQ(kept(3), 1U * 2);
  parallel.interleaving = 2;
  EXPECT_EQ(kept(0), 8U + 8 * 3 / 8);
  parallel.interleaving = 1;
  parallel.pipeline.schedule = Schedule::gpipe;
  EXPECT_EQ(kept(0), 8U * 2);
  EXPECT_EQ(kept(3), 8U * 2);
}

TEST(Figures, HeadsOfKeysAndValuesAreRepeatedAboveTheirNumber) {
  // One layer of hidden size 64 with 8 heads of 8 values, of which 2 are of keys and values, on tp 8: each NPU must
  // hold 1 head of queries and 1 of keys and values, which 4 NPUs hold. Its matrices are 64 x (2 x 8 + 2 x 8) of
  // attention and 2 x 64 x 32 of the MLP, and its norms 2 x 64. What the model has and does must be as without tp.
  Description description{
      Transformer{.layers = 1, .hidden = 64, .sequence = 32, .attention = {.heads = 8, .kv_heads = 2}}, {}};
  const Figures alone = figures(description);
  description.parallel[Axis::tp] = 8;
  const Figures shared = figures(description);
  const std::uint64_t parameters = 2048 + 4096 + 128;
  const StageFigures& stage = shared.stages.at(0);
  EXPECT_EQ(stage.local.parameters, 2 * parameters);
  EXPECT_EQ(stage.local.optimizer, 12 * parameters);
  // 2 bytes for each of 32 tokens: 64 values of two norms and two inputs, the queries, keys, values and inputs of the
  // projection, and two times 32 values of the MLP.
  EXPECT_EQ(stage.local.activations, 2 * 32 * (4 * 64 + 4 * 8 + 2 * 32));
  // Forward: products of 32 tokens with the matrices, and half of attention's core; backward 2 and 2.5 times that.
  const std::uint64_t products = 2ULL * 32 * 64 * (8 + 2 * 8 + 8 + 2 * 32), core = 4 * 32 * 32 * 8 / 2;
  EXPECT_EQ(stage.flops, 3 * products + core * 7 / 2 + 12 * parameters);
  EXPECT_DOUBLE_EQ(shared.model_flops, alone.model_flops);
  EXPECT_EQ(shared.parameters, alone.parameters);
}

TEST(Figures, TheReportOfLayersByTimesHasNoFlops) {
  // A layer by its times with 2^25 parameters on 4 copies: the report must name no FLOPs, 4 samples, and 2 bytes of
  // each parameter and gradient and 12 of optimizer state.
  Description description{LayerList{.layers = {{.name = "sum", .parameters = 1U << 25U}}}, {}};
  description.parallel[Axis::dp] = 4;
  const auto text = report(description, figures(description));
  EXPECT_EQ(text.find("FLOPs"), std::string::npos) << text;
  EXPECT_NE(text.find("step: 4 samples\n"), std::string::npos) << text;
  EXPECT_NE(text.find("parameters 67.11 MB, gradients 67.11 MB, optimizer 402.65 MB, activations 0 B: 536.87 MB\n"),
            std::string::npos)
      << text;
}

TEST(Figures, TheReportOfGptNamesTokens) {
  // GPT-3 175B with tp 8 and pp 8: the report must name samples, tokens, FLOPs for each token and the optimizer's
  // memory.
  Description description = gpt3();
  description.parallel.sizes = {8, 1, 1, 1, 8};
  const auto text = report(description, figures(description));
  EXPECT_NE(text.find("1 sample, 2.048 k tokens, 2.175 PFLOPs of the model (1.062 TFLOPs for each token), "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(" GB, optimizer 33.87 GB, "), std::string::npos) << text;
}

TEST(Figures, WhatCannotBeDividedIsRefused) {
  // GPT-3 175B, changed in ways that cannot be divided or counted: each must be refused with its key.
  const auto refused = [](auto change, std::string_view key) {
    Description description = gpt3();
    change(std::get<Transformer>(description.model), description.parallel);
    try {
      figures(description);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_input);
      EXPECT_NE(std::string(error.what()).find(key), std::string::npos) << error.what();
      return true;
    }
    return false;
  };
  EXPECT_FALSE(refused([](auto&, auto&) {}, ""));
  EXPECT_TRUE(refused([](auto&, auto& p) { p[Axis::tp] = 0; }, "workload.parallel.tp"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p[Axis::tp] = 7; }, "workload.parallel.tp"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p[Axis::pp] = 97; }, "workload.parallel.pp"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p[Axis::cp] = 3; }, "workload.parallel.cp"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p[Axis::ep] = 2; }, "workload.parallel.ep"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p[Axis::dp] = 4'000'000'000, p[Axis::pp] = 2; }, "2^32"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p.sharding.zero = 4; }, "workload.parallel.zero"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p.sharding.replicas = 0; }, "workload.parallel.replicas"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p.sharding.zero = 1, p.sharding.replicas = 3; }, "workload.parallel.dp"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p.sharding.replicas = 2, p[Axis::dp] = 2; }, "workload.parallel.replicas"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p.micro_batches = 0; }, "workload.parallel.micro-batches"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p.placement[0] = Axis::dp; }, "workload.parallel.placement"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p[Axis::pp] = 4, p.interleaving = 2; }, "workload.parallel.micro-batches"));
  EXPECT_TRUE(refused([](auto& m, auto&) { m.hidden = 96ULL << 40U; }, "workload.model"));
  EXPECT_TRUE(refused([](auto&, auto& p) { p.micro_batch = 1ULL << 50U; }, "FLOPs in a layer"));
  EXPECT_TRUE(refused([](auto& m, auto&) { m.layers = 0; }, "workload.model.layers"));
  EXPECT_TRUE(refused([](auto& m, auto&) { m.mlp.top_k = 2; }, "workload.model.top-k"));
  EXPECT_TRUE(refused([](auto& m, auto&) { m.mlp.experts = 8; }, "workload.model.top-k"));
  EXPECT_TRUE(refused([](auto& m, auto&) { m.attention.heads = 95; }, "workload.model.hidden"));
  EXPECT_TRUE(refused([](auto& m, auto& p) { m.attention.kv_heads = 32, p[Axis::tp] = 48; }, "workload.parallel.tp"));
  EXPECT_TRUE(refused([](auto& m, auto& p) { m.attention.kv_heads = 12, p[Axis::tp] = 8; }, "workload.parallel.tp"));
}

}  // namespace
}  // namespace orrery::workload
