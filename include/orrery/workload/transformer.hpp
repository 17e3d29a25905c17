#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/workload/parallel.hpp"

namespace orrery::workload {

struct Layer;
struct ParameterCount;

/// A decoder-only transformer. Formulas and sources: docs/workloads.md.
struct Transformer {
  static constexpr std::string_view family = "transformer";
  static constexpr std::string_view help = "decoder-only transformer, dense or with experts";

  struct Attention {
    std::uint32_t heads = 32;
    std::uint32_t kv_heads = 0;   ///< heads of keys and values; 0: as many as heads
    std::uint64_t head_size = 0;  ///< 0: hidden / heads
    bool fused = true;            ///< scores stay on chip and are computed again in the backward pass
    bool causal = true;           ///< a token attends to those before it only
    bool rotary = false;          ///< positions are turned into queries and keys
    bool head_norms = false;      ///< the heads of queries and keys are normed

    friend bool operator==(const Attention&, const Attention&) = default;
  };
  /// Multi-head latent attention: queries, keys and values are made of small vectors of each token.
  struct Latent {
    std::uint64_t key_value = 0;  ///< width of the vector for keys and values; 0: there is none
    std::uint64_t query = 0;      ///< width of the vector for queries; 0: they are made of the token itself
    std::uint64_t rotary = 0;     ///< width of the part of queries and keys that positions turn, besides the head's
    std::uint64_t value = 0;      ///< width of the values of a head; 0: that of a head

    friend bool operator==(const Latent&, const Latent&) = default;
  };
  struct Mlp {
    std::uint64_t width = 0;           ///< inner width, of each expert; 0: 4 * hidden
    bool gated = false;                ///< three matrices (SwiGLU) instead of two
    std::uint32_t experts = 0;         ///< number of experts; 0: dense
    std::uint32_t top_k = 0;           ///< number of experts that a token passes
    std::uint32_t servers = 0;         ///< largest number of servers on which these are; 0: any
    std::uint32_t shared_experts = 0;  ///< further ones that every token passes
    std::uint32_t dense_layers = 0;    ///< first layers, which have no experts
    std::uint32_t interval = 1;        ///< after them, the last of so many layers has experts
    std::uint64_t dense_width = 0;     ///< inner width of layers without experts; 0: `width`
    bool router_bias = false;          ///< the router has a value for each expert, which balances them

    friend bool operator==(const Mlp&, const Mlp&) = default;
  };
  struct Embedding {
    std::uint64_t vocabulary = 0;    ///< 0: neither embedding nor output layer
    bool learned_positions = false;  ///< there are `sequence` position embeddings
    bool tied = false;               ///< the output layer is the embedding's transpose

    friend bool operator==(const Embedding&, const Embedding&) = default;
  };

  std::uint32_t layers = 32;
  std::uint64_t hidden = 4096;
  std::uint64_t sequence = 2048;  ///< tokens of a sample
  Attention attention = {};
  Latent latent = {};
  Mlp mlp = {};
  Embedding embedding = {};
  std::uint32_t further_tokens = 0;   ///< tokens predicted besides the next one, each by a block of its own
  RecomputedModules recomputed = {};  ///< modules that its software computes again, unless Parallel says otherwise
  bool biases = false;                ///< all products and norms have biases
  bool dropout = false;               ///< there are dropout masks, which are moved and kept

  std::uint64_t head_width() const { return attention.head_size ? attention.head_size : hidden / attention.heads; }
  bool is_latent() const { return latent.key_value > 0; }
  std::uint64_t query_head() const { return head_width() + latent.rotary; }
  std::uint64_t value_head() const { return latent.value ? latent.value : head_width(); }
  std::uint64_t query_width() const { return attention.heads * query_head(); }
  std::uint32_t kv_heads() const { return attention.kv_heads ? attention.kv_heads : attention.heads; }
  std::uint64_t key_width() const { return kv_heads() * query_head(); }
  std::uint64_t value_width() const { return kv_heads() * value_head(); }
  /// Returns how many of `tp` NPUs hold the same head of keys and values: more than one if there are fewer heads.
  std::uint32_t kv_copies(std::uint32_t tp) const { return std::max(tp / kv_heads(), 1U); }
  std::uint64_t mlp_width() const { return mlp.width ? mlp.width : 4 * hidden; }
  std::uint64_t dense_width() const { return mlp.dense_width ? mlp.dense_width : mlp_width(); }
  bool has_experts(std::uint32_t layer) const {
    return mlp.experts > 0 && layer >= mlp.dense_layers && (layer - mlp.dense_layers + 1) % mlp.interval == 0;
  }
  RecomputedModules recomputed_modules(const Parallel& parallel) const {
    if (parallel.is_inference() || parallel.recompute == Recompute::full) return {};
    return parallel.pipeline.recomputed_modules.value_or(recomputed);
  }
  /// Returns the parameters of latent attention, without norms of the block, on one of `tp` NPUs.
  std::uint64_t latent_parameters(std::uint64_t tp) const;

  void validate(const Parallel& parallel) const;
  std::vector<Layer> make_layers(const Parallel& parallel, std::optional<std::uint32_t> expert_rank) const;
  ParameterCount count_parameters() const;
  std::uint64_t num_blocks() const { return layers; }
  std::uint64_t tokens_per_sample() const { return sequence; }

  friend bool operator==(const Transformer&, const Transformer&) = default;
};

}  // namespace orrery::workload
