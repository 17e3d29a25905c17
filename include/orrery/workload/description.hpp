#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"

namespace orrery::workload {

/// A decoder-only transformer. Formulas and sources: docs/workloads.md.
struct Transformer {
  std::uint32_t layers = 32;
  std::uint64_t hidden = 4096;
  std::uint32_t heads = 32;
  std::uint32_t kv_heads = 0;      ///< 0: as many as heads
  std::uint64_t head_size = 0;     ///< 0: hidden / heads
  std::uint64_t ffn = 0;           ///< inner width of the MLP, of each expert; 0: 4 * hidden
  std::uint64_t vocabulary = 0;    ///< 0: neither embedding nor output layer
  std::uint64_t sequence = 2048;   ///< tokens
  bool gated = false;              ///< MLP of three matrices (SwiGLU) instead of two
  bool biases = false;             ///< of all products and of the norms
  bool dropout = false;            ///< its masks take memory
  bool learned_positions = false;  ///< `sequence` position embeddings
  bool tied_embeddings = false;    ///< the output layer is the embedding's transpose
  bool fused_attention = true;     ///< scores stay on chip and are computed again in the backward pass
  std::uint32_t experts = 0;       ///< of each layer's MLP; 0: dense
  std::uint32_t top_k = 0;         ///< experts of a token

  std::uint64_t query_width() const { return heads * (head_size ? head_size : hidden / heads); }
  std::uint64_t kv_width() const { return query_width() / heads * (kv_heads ? kv_heads : heads); }
  std::uint64_t ffn_width() const { return ffn ? ffn : 4 * hidden; }

  friend bool operator==(const Transformer&, const Transformer&) = default;
};

/// A deep-learning recommendation model (Naumov et al., arXiv 1906.00091). Its MLPs are data parallel, its tables
/// spread evenly over all NPUs.
struct Dlrm {
  std::uint64_t dense_features = 13;
  std::vector<std::uint64_t> bottom;  ///< widths of the MLP over dense features; the last is that of the tables
  std::vector<std::uint64_t> tables;  ///< rows of each
  std::uint64_t pooling = 1;          ///< rows of a table that a sample looks up
  std::vector<std::uint64_t> top;     ///< widths of the MLP over the interaction

  friend bool operator==(const Dlrm&, const Dlrm&) = default;
};

/// Layers in a row, each given by its numbers.
struct LayerList {
  struct Layer {
    std::string name;
    std::uint64_t parameters = 0;
    std::uint64_t flops = 0;        ///< forward, of one sample; the backward pass takes twice that
    std::uint64_t activations = 0;  ///< values that it hands to the next layer, for one sample
    /// Without flops: what its passes take for a micro-batch, and what it adds to the optimizer's time.
    Time forward = {}, backward = {}, update = {};

    bool is_timed() const { return flops == 0; }
    friend bool operator==(const Layer&, const Layer&) = default;
  };
  /// NPUs that start late: NPU i of N by first + (stride * i mod N) * step.
  struct Late {
    Time first, step;
    std::uint32_t stride = 1;

    Time of(NpuId npu, std::uint32_t num_npus) const {
      return first + step * static_cast<std::int64_t>(std::uint64_t{stride} * npu.value() % num_npus);
    }
    friend bool operator==(const Late&, const Late&) = default;
  };
  std::vector<Layer> layers;
  std::optional<Late> late = {};

  bool is_timed() const { return late || std::ranges::any_of(layers, &Layer::is_timed); }
  friend bool operator==(const LayerList&, const LayerList&) = default;
};

using Model = std::variant<Transformer, Dlrm, LayerList>;

/// The ways to divide the work; the number of NPUs is their product. Batches are divided by dp and ep, sequences by cp.
enum class Axis : std::uint8_t { tp, cp, ep, dp, pp };
constexpr std::size_t num_axes = 5;
constexpr std::array<std::string_view, num_axes> axis_names = {"tp", "cp", "ep", "dp", "pp"};

enum class Schedule : std::uint8_t { one_forward_one_backward, gpipe };
enum class Recompute : std::uint8_t { none, selective, full };
enum class Precision : std::uint8_t { bf16, fp8, fp32 };
/// How fine compute nodes are: one for each stretch between communications, or one for each operator.
enum class Detail : std::uint8_t { block, op };

/// What of a model lives in remote memory (ZeRO-Infinity: Rajbhandari et al., SC 2021).
struct Offload {
  bool parameters = false, gradients = false, optimizer = false;
  bool on_path = false;  ///< the switches on the way to the memory do the collectives of loads and stores

  bool any() const { return parameters || gradients || optimizer; }
  friend bool operator==(const Offload&, const Offload&) = default;
};

struct Parallel {
  std::array<std::uint32_t, num_axes> sizes = {1, 1, 1, 1, 1};  ///< by Axis
  /// Innermost first: NPU ids count along placement[0] fastest.
  std::array<Axis, num_axes> placement = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};
  std::uint32_t interleaving = 1;  ///< virtual stages on each NPU
  bool sequence_parallel = false;  ///< norms and dropout are divided by tp too (Korthikanti et al., 2022)
  std::uint32_t zero = 0;          ///< stage of ZeRO (Rajbhandari et al., 2020), 0 to 3
  Offload offload;
  std::uint32_t prefetch = 1;       ///< layers whose parameters are gathered or loaded ahead, and optimizer state
  std::uint64_t micro_batch = 1;    ///< samples
  std::uint32_t micro_batches = 1;  ///< per step and replica
  Schedule schedule = Schedule::one_forward_one_backward;
  Recompute recompute = Recompute::none;
  Bytes bucket;         ///< gradients are summed when so many are there; 0: after each layer
  bool overlap = true;  ///< gradients are summed during the backward pass
  Precision precision = Precision::bf16;
  Precision gradients = Precision::bf16;  ///< in which gradients are kept and summed: bf16 or fp32
  Detail detail = Detail::block;

  std::uint32_t operator[](Axis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  std::uint32_t& operator[](Axis axis) { return sizes[static_cast<std::size_t>(axis)]; }
  std::uint32_t num_npus() const;  ///< throws Error (bad_input) above 2^32 - 1
  std::uint32_t num_virtual_stages() const { return (*this)[Axis::pp] * interleaving; }
  std::uint32_t num_replicas() const { return (*this)[Axis::dp] * (*this)[Axis::ep]; }

  friend bool operator==(const Parallel&, const Parallel&) = default;
};

/// What is trained and how it is divided.
struct Description {
  Model model;
  Parallel parallel;

  /// Throws Error (bad_input) that names the key of CONFIG.yaml.
  void validate() const;

  friend bool operator==(const Description&, const Description&) = default;
};

}  // namespace orrery::workload
