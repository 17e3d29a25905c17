#pragma once

#include <random>

#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// Any of its subsets, every other one on the path where that does something.
inline Offload random_offload(std::uint32_t seed, std::uint32_t zero) {
  std::mt19937 random(seed);
  Offload offload;
  for (bool* state : {&offload.parameters, &offload.gradients, &offload.optimizer}) *state = random() % 2 == 0;
  offload.on_path = (offload.gradients || (offload.parameters && zero == 3)) && random() % 2 == 0;
  return offload;
}

/// A small model and a parallelisation that it allows, on at most 64 NPUs. Two of three have nothing offloaded.
inline Description random_description(std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](std::initializer_list<std::uint32_t> values) {
    return values.begin()[random() % values.size()];
  };
  Description description;
  auto& parallel = description.parallel;
  parallel.sharding.zero = pick({0, 1, 2, 3});
  if (seed % 3 == 0) parallel.sharding.offload = random_offload(seed, parallel.sharding.zero);
  parallel.sharding.prefetch = pick({0, 1, 3});
  parallel.sharding.calls.of_layer = seed % 5 == 0 ? 3 : 1;
  parallel.micro_batch = pick({1, 2});
  parallel.micro_batches = pick({1, 2, 4, 8});
  parallel.pipeline.schedule = static_cast<Schedule>(pick({0, 0, 1}));
  parallel.recompute = static_cast<Recompute>(pick({0, 1, 2}));
  parallel.sharding.bucket = Bytes(pick({0, 100'000, 10'000'000}));
  parallel.sharding.overlap = random() % 4 != 0;
  parallel.precision = static_cast<Precision>(pick({0, 0, 1, 4}));
  parallel.gradients = static_cast<Precision>(pick({0, 4}));
  parallel.detail = static_cast<Detail>(pick({0, 1}));
  std::shuffle(parallel.placement.begin(), parallel.placement.end(), random);
  parallel[Axis::dp] = pick({1, 2, 3});
  const std::uint32_t kind = pick({0, 0, 0, 0, 1, 2});
  if (kind == 1) {
    description.model =
        Dlrm{.dense_features = 13, .bottom = {32, 16}, .tables = {{1000}, {50}, {7}}, .pooling = 2, .top = {32, 1}};
    parallel.sharding.prefetch = Parallel().sharding.prefetch;
    parallel.pipeline.schedule = Parallel().pipeline.schedule;
    parallel.recompute = Parallel().recompute;
    parallel.detail = Parallel().detail;
    return description;
  }
  parallel[Axis::tp] = pick({1, 2, 4});
  parallel[Axis::pp] = pick({1, 2, 4});
  if (kind == 2) {
    LayerList list;
    for (std::uint32_t i = 0; i < 6; ++i)
      list.layers.push_back({"part_" + std::to_string(i), 4096 * (i % 3), 8192 * (i + 1), 1024 * (i + 1)});
    description.model = list;
    return description;
  }
  parallel[Axis::cp] = pick({1, 1, 2});
  parallel.sequence_parallel = random() % 2 == 0;
  Transformer model{.layers = pick({8, 10}),
                    .hidden = 64,
                    .sequence = 32,
                    .attention = {.heads = 8},
                    .mlp = {.width = 160},
                    .embedding = {.vocabulary = pick({0, 256})}};
  model.attention.kv_heads = pick({0, 4});
  model.mlp.gated = random() % 2 == 0;
  model.biases = random() % 2 == 0;
  model.dropout = random() % 2 == 0;
  model.embedding.tied = random() % 2 == 0;
  model.embedding.learned_positions = random() % 2 == 0;
  model.attention.fused = random() % 2 == 0;
  if (random() % 3 == 0) {
    model.mlp.experts = 4;
    model.mlp.top_k = 2;
    parallel[Axis::ep] = pick({1, 2});
  }
  description.model = model;
  const std::uint32_t stages = parallel[Axis::pp];
  if (stages > 1 && parallel.micro_batches % stages == 0 && parallel.pipeline.schedule != Schedule::gpipe)
    parallel.interleaving = pick({1, 2});
  if (seed % 2 == 0 && parallel.sharding.zero > 0 && !parallel.sharding.offload.on_path)
    parallel.sharding.replicas = parallel[Axis::dp];
  return description;
}

}  // namespace orrery::workload
