#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/workload/tables.hpp"

namespace orrery::workload {

/// The ways to divide the work: tensor, context, expert, data and pipeline parallelism. The number of NPUs is the
/// product of their sizes. Batches are divided by dp and ep, sequences by cp.
enum class Axis : std::uint8_t { tp, cp, ep, dp, pp };
constexpr std::size_t num_axes = 5;
constexpr std::array<std::string_view, num_axes> axis_names = {"tp", "cp", "ep", "dp", "pp"};

enum class Schedule : std::uint8_t { one_forward_one_backward, gpipe, zb_h1, zb_v, dual_pipe };
/// What a step is: one of training; or of inference, in which prompts are read, or one token is made for each sequence,
/// or both in turn until each sequence has all its tokens.
enum class Phase : std::uint8_t { training, prefill, decode, request };
/// How context parallelism brings keys and values to all: gathered before the core of attention, or passed on in a ring
/// beside it.
enum class ContextExchange : std::uint8_t { gather, ring };
enum class Recompute : std::uint8_t { none, selective, full };
/// How tokens travel to experts on other NPUs. `automatic`: as the system's software does, which the configuration
/// decides; an all-to-all without a system.
enum class ExpertExchange : std::uint8_t { automatic, all_to_all, once_per_server, low_latency };
/// Work that is computed while tokens travel: nothing, the experts that every token passes, or another micro-batch.
enum class ExpertOverlap : std::uint8_t { none, shared, batches };
enum class Precision : std::uint8_t { bf16, fp8, mxfp8, nvfp4, fp32 };

/// Says whether operands of products have fewer than two bytes, to which activations and gradients are cast.
constexpr bool is_below_bf16(Precision precision) {
  return precision == Precision::fp8 || precision == Precision::mxfp8 || precision == Precision::nvfp4;
}
/// How fine compute nodes are: one for all operators between two communications, or one for each operator.
enum class Detail : std::uint8_t { block, op };

/// Which model states are kept in remote memory (ZeRO-Infinity: Rajbhandari et al., SC 2021).
struct Offload {
  bool parameters = false, gradients = false, optimizer = false;
  bool on_path = false;  ///< switches on the way to the memory carry out the collectives of loads and stores

  bool any() const { return parameters || gradients || optimizer; }
  friend bool operator==(const Offload&, const Offload&) = default;
};

/// How software makes its calls of ZeRO 3's collectives: for each layer one, beside everything else, or one for each
/// weight, before which the NPU waits for the host.
struct Calls {
  std::uint32_t of_layer = 1;  ///< collectives into which a layer's gathers and sums are divided, one after the other
  Time each = {};              ///< host time to make one call
  Time of_member = {};         ///< likewise for each member: tensors that it slices and copies

  friend bool operator==(const Calls&, const Calls&) = default;
};

/// How the copies of a model share its states (parameters, gradients and the optimizer's state), and when states move;
/// and how NPUs share tables, which have no copies.
struct Sharding {
  std::uint32_t zero = 0;      ///< stage of ZeRO (Rajbhandari et al., 2020), 0 to 3
  std::uint32_t replicas = 1;  ///< sets of NPUs that hold all states; ZeRO divides them within each set
  Offload offload;
  std::uint32_t prefetch = 1;  ///< number of layers ahead whose parameters and optimizer state are fetched
  /// Gradients are reduced as soon as there are so many; 0: after each layer; none: by the rule of Megatron-Core.
  std::optional<Bytes> bucket = Bytes(0);
  /// ZeRO 2 and 3: number of buckets of gradients that are filled or reduced at a time; 0: any number. Without overlap
  /// it is one.
  std::uint32_t bucket_buffers = 2;
  bool overlap = true;       ///< gradients are reduced during the backward pass instead of after it
  bool sums_apart = false;   ///< ZeRO 3: sums of gradients yield to gathers, and do not hold them up
  double exposed_share = 0;  ///< share of the bytes of ZeRO 3's collectives for which compute waits
  Calls calls;
  /// ZeRO 1 and 2: new parameters are gathered before each layer's first forward pass instead of after the update.
  bool gather_before_forward = false;
  /// Before the update, gradients of norms are summed over tp with sequence parallelism, and the norm of all gradients
  /// over all NPUs.
  bool norm_sums = false;
  /// ZeRO 1 and 2: each new parameter tensor has one owner, which broadcasts it; otherwise copies gather their shares.
  bool owners_broadcast = false;
  TableDivision tables;

  friend bool operator==(const Sharding&, const Sharding&) = default;
};

/// Parts of a layer that the backward pass computes again, whose results are not kept.
struct RecomputedModules {
  bool norms = false;       ///< results of norms
  bool activation = false;  ///< results of the function between the products of an MLP
  bool latent = false;      ///< queries, keys and values of latent attention, from the small vectors
  bool mlp = false;         ///< whole MLPs of layers without experts
  bool experts = false;     ///< whole MLPs of layers with experts, with their exchanges

  bool any() const { return norms || activation || latent || mlp || experts; }
  friend bool operator==(const RecomputedModules&, const RecomputedModules&) = default;
};

/// The parts of a layer that overlap with its communication.
struct LayerOverlap {
  double tensor = 0;  ///< share of the products next to tensor-parallel collectives
  ContextExchange context = ContextExchange::gather;
  ExpertOverlap experts = ExpertOverlap::none;

  friend bool operator==(const LayerOverlap&, const LayerOverlap&) = default;
};

/// How the experts of a layer are divided, and how many rows they compute.
struct ExpertDivision {
  /// Rows of experts' products, of an even share of the tokens: fewer are padded, and more are dropped.
  double capacity = 1;
  /// Number of NPUs that share an expert: those of tp (0, or its size), or one, so that each has experts of its own.
  std::uint32_t tp = 0;
  double imbalance = 0;    ///< standard deviation of the logarithm of the experts' loads, which are drawn
  std::uint32_t seed = 1;  ///< seed of the draws
  ExpertExchange exchange = ExpertExchange::automatic;
  /// Precision in which tokens and their gradients travel to experts and back. None: by the kernels of the exchange,
  /// fp8 to experts with Precision::fp8; otherwise as other values.
  std::optional<Precision> dispatch = {}, combine = {};

  friend bool operator==(const ExpertDivision&, const ExpertDivision&) = default;
};

/// What a request asks for.
struct Request {
  std::uint64_t tokens = 128;  ///< tokens generated for each sequence
  /// Number of the tokens after the first one whose steps are simulated; the times of others lie between. 0: all.
  std::uint64_t samples = 0;

  friend bool operator==(const Request&, const Request&) = default;
};

/// What the stages of a pipeline hold, and which passes they execute in which order.
struct Pipeline {
  Phase phase = Phase::training;
  Request request;
  Schedule schedule = Schedule::one_forward_one_backward;
  bool delayed_weight_gradients = false;  ///< gradients of weights are computed after those of inputs have been sent
  bool scattered_messages = false;        ///< each NPU of tp sends its share between stages, which a gather makes whole
  /// The blocks of each virtual stage; empty: as evenly as possible.
  std::vector<std::uint64_t> stage_layers = {};
  /// With full recomputation: how many layers of each virtual stage are computed again; empty: all.
  std::optional<std::uint32_t> recompute_layers = {};
  std::optional<RecomputedModules> recomputed_modules = {};  ///< none: those of the model
  std::optional<Precision> cache_precision = {};  ///< inference: of keys and values; none: Parallel::precision

  friend bool operator==(const Pipeline&, const Pipeline&) = default;
};

/// What the software does besides in each layer.
struct Extras {
  bool fused_loss = true;       ///< the loss and its gradient pass the scores of words once each
  bool fused_gradients = true;  ///< products add gradients of weights to their sums, without a kernel of its own
  Time host = {};               ///< time for which the NPU waits for the host in each pass through a layer

  friend bool operator==(const Extras&, const Extras&) = default;
};

/// How the training of a model is divided among NPUs.
struct Parallel {
  std::array<std::uint32_t, num_axes> sizes = {1, 1, 1, 1, 1};  ///< size of each Axis
  /// Axes from the innermost on: NPU ids count along placement[0] fastest.
  std::array<Axis, num_axes> placement = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};
  std::uint32_t interleaving = 1;  ///< virtual stages on each NPU
  bool sequence_parallel = false;  ///< norms and dropout are divided by tp too (Korthikanti et al., 2022)
  LayerOverlap overlap;
  Extras extras;
  ExpertDivision experts;
  Sharding sharding;
  std::uint64_t micro_batch = 1;    ///< samples
  std::uint32_t micro_batches = 1;  ///< number per step and replica
  Pipeline pipeline;
  Recompute recompute = Recompute::none;
  Precision precision = Precision::bf16;
  Time between_steps = {};                ///< time before a step outside the model: data loading, logging, the host
  Precision gradients = Precision::bf16;  ///< precision in which gradients are kept and reduced: bf16 or fp32
  Detail detail = Detail::block;

  std::uint32_t operator[](Axis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  std::uint32_t& operator[](Axis axis) { return sizes[static_cast<std::size_t>(axis)]; }
  /// Returns the product of the sizes. Throws Error (bad_input) if it is more than 2^32 - 1.
  std::uint32_t num_npus() const;
  /// Returns the number of virtual stages on each NPU.
  std::uint32_t num_chunks() const { return interleaving * (is_folded() || is_mirrored() ? 2 : 1); }
  /// Returns the number of parts of the model. With DualPipe two NPUs have a copy of each.
  std::uint32_t num_virtual_stages() const { return (*this)[Axis::pp] * (is_mirrored() ? 1 : num_chunks()); }
  bool is_inference() const { return pipeline.phase != Phase::training; }
  /// Returns the bytes of the message in which an NPU hands these bytes to the next stage.
  std::uint64_t message_bytes(std::uint64_t handed) const {
    const bool is_scattered = pipeline.scattered_messages && !sequence_parallel && !is_inference();
    const std::uint64_t senders = is_scattered ? (*this)[Axis::tp] : 1;
    return (handed + senders - 1) / senders;
  }
  /// Says whether virtual stages go down the NPUs of a pipeline and back up, in a V.
  bool is_folded() const { return pipeline.schedule == Schedule::zb_v; }
  /// Says whether two directions of a pipeline have copies of the model: stage p of the one is stage pp - 1 - p of the
  /// other.
  bool is_mirrored() const { return pipeline.schedule == Schedule::dual_pipe; }
  /// Returns which virtual stage a chunk of a stage is.
  std::uint32_t virtual_stage(std::uint32_t stage, std::uint32_t chunk) const;
  /// Returns the stage whose chunk is a virtual stage, for a micro-batch that passes through this chunk elsewhere.
  std::uint32_t stage_of(std::uint32_t virtual_stage, std::uint32_t chunk) const;
  /// Returns the share of the time of the passes that NPUs wait if passes are equal and messages take no time. Sources:
  /// docs/workloads.md, *Schedules*.
  double ideal_bubble() const;
  /// Says whether special kernels exchange tokens, in place of an all-to-all.
  bool has_expert_kernels() const {
    return num_expert_ranks() > 1 &&
           (experts.exchange == ExpertExchange::once_per_server || experts.exchange == ExpertExchange::low_latency);
  }
  /// Returns how many NPUs share an expert.
  std::uint32_t expert_tp() const { return experts.tp == 1 ? 1 : (*this)[Axis::tp]; }
  /// Returns among how many NPUs, or sets of NPUs that share experts, the experts of a layer are divided.
  std::uint32_t num_expert_ranks() const { return (*this)[Axis::ep] * ((*this)[Axis::tp] / expert_tp()); }
  std::uint32_t num_replicas() const { return (*this)[Axis::dp] * (*this)[Axis::ep]; }
  /// Returns among how many NPUs along dp the states of a model are divided.
  std::uint32_t shards_along_dp() const { return (*this)[Axis::dp] / sharding.replicas; }

  /// Returns the numbers of the tokens, counted from 1, whose steps are simulated: of a request the first one, which
  /// the prefill makes, and those that are decoded; otherwise nothing.
  std::vector<std::uint64_t> made_tokens() const;

  /// Returns a warning that names the key of CONFIG.yaml if there are several stages and a single micro-batch.
  std::optional<std::string> pipeline_warning() const;
  /// Throws Error (bad_input), which names the key of CONFIG.yaml, for values that no model can have.
  void validate() const;

  friend bool operator==(const Parallel&, const Parallel&) = default;
};

/// Returns the bytes of a value of an operand of a product, with its part of the scale of its block.
double operand_size(Precision precision);

/// Returns the precision in which inference keeps keys and values.
inline Precision precision_of_cache(const Parallel& parallel) {
  return parallel.pipeline.cache_precision.value_or(parallel.precision);
}

/// Says whether forward and backward passes go in pairs, each of which computes while the tokens of the other travel.
inline bool pairs_passes(const Parallel& parallel) {
  return parallel.overlap.experts == ExpertOverlap::batches && parallel.num_expert_ranks() > 1 &&
         !parallel.is_inference();
}

/// Returns the precision in which tokens travel to experts, or back.
inline Precision precision_of_tokens(const Parallel& parallel, bool to_experts) {
  const Precision values = parallel.precision == Precision::fp32 ? Precision::fp32 : Precision::bf16;
  if (!to_experts) return parallel.experts.combine.value_or(values);
  const bool is_fp8 = is_below_bf16(parallel.precision) && parallel.has_expert_kernels();
  return parallel.experts.dispatch.value_or(is_fp8 ? Precision::fp8 : values);
}

}  // namespace orrery::workload
