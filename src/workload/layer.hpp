#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/compute/operation.hpp"
#include "orrery/trace/graph.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// The groups of an NPU: all NPUs that differ from it only along some axes.
enum class GroupKind : std::uint8_t {
  tensor,            ///< tp
  context,           ///< cp
  expert,            ///< ep, and tp if each NPU has experts of its own
  data,              ///< cp, ep, dp: copies of parameters that are not those of an expert, in a replica
  expert_data,       ///< cp, dp: copies of an expert, in a replica
  embedding,         ///< first and last stage, both of which hold the embedding
  all,               ///< all NPUs
  replicas,          ///< dp: the NPUs that have the same share of the states, one of each replica
  data_sums,         ///< the members of data, in a communicator for sums beside gathers (Sharding::sums_apart)
  expert_data_sums,  ///< those of expert_data
};

/// An operator: what an NPU does for one micro-batch in one layer. `name` is a literal.
struct Operator {
  enum class Kind : std::uint8_t {
    compute,
    collective,
    asynchronous,  ///< a collective for which nothing waits before the next `wait`
    wait,          ///< barrier: later operators wait for all asynchronous collectives
  };
  Kind kind = Kind::compute;
  const char* name = "";
  std::uint64_t flops = 0;
  std::uint64_t bytes = 0;  ///< moved by a compute operator; comm_size of a collective
  Time duration = {};  ///< duration of a compute operator that is given by its time or estimated by a compute model
  trace::CollectiveKind collective{};
  GroupKind group{};
  compute::Operation::Kind operation = compute::Operation::Kind::elementwise;  ///< kind of a compute operator
  compute::ProductShape shape = {};  ///< shape of a product's or attention's scores
  bool is_backward = false;          ///< direction of a product or attention
  bool is_causal = false;            ///< mask of attention
  bool has_weights = false;          ///< weights of a product, to which half of its backward pass belongs
  compute::Operation::Casts casts = compute::Operation::Casts::all;  ///< casts of a product
  bool is_inference = false;                                         ///< true for a product of inference engines
  double share = 1;  ///< share of the operation that the operator computes

  friend bool operator==(const Operator&, const Operator&) = default;
};

/// Those of the parameters `Layer::dense` that have copies elsewhere too.
struct PartsOfDense {
  std::uint64_t tied = 0;   ///< bytes in the NPU's embedding group
  std::uint64_t norms = 0;  ///< bytes in its tp group

  friend bool operator==(const PartsOfDense&, const PartsOfDense&) = default;
};

/// A layer as one NPU executes it.
struct Layer {
  std::string name;
  std::vector<Operator> forward = {}, backward = {};
  std::vector<Operator> recomputation = {};  ///< full recomputation, before `backward`
  /// FLOPs of `forward` that do not count for the model: what another NPU of its tp group does too, and the masked
  /// scores that a core computes if it is not fused.
  std::uint64_t beside_model_flops = 0;
  std::uint64_t dense = 0;    ///< parameters on the NPU that have copies in its data group
  std::uint64_t experts = 0;  ///< parameters of experts, which have copies in its expert_data group
  std::uint64_t sharded = 0;  ///< parameters without copies, which the backward pass updates
  PartsOfDense of_dense = {};
  std::uint64_t activations = 0;    ///< bytes kept for the backward pass of a micro-batch
  std::uint64_t cache = 0;          ///< inference: bytes of keys and values of a micro-batch's sequences
  std::uint64_t recomputed = 0;     ///< bytes that `recomputation` makes and `backward` needs
  std::uint64_t output = 0;         ///< bytes handed to the next layer for a micro-batch
  std::optional<Time> update = {};  ///< the optimizer's time for it, if its parameters do not say
  bool is_beside_blocks = false;    ///< embedding or output layer: stages do not share it as a block
};

/// Returns whether layers are equal but for their names.
bool are_alike(const Layer& a, const Layer& b);

/// The number of parameters of a whole model, and the number that a sample passes.
struct ParameterCount {
  std::uint64_t all = 0, active = 0;
};

/// Returns the layers of the whole model, in order, as an NPU of its stage executes each. `part` says which part of the
/// experts the NPU has, 0 to Parallel::num_expert_ranks(), or of which kind it is; without it, experts and tables are
/// those of the mean NPU.
std::vector<Layer> make_layers(const Description& description, std::optional<std::uint32_t> part = {});
/// Returns the kind of each NPU, by which layers differ; empty if they do not differ so.
std::vector<std::uint32_t> kinds_of_npus(const Description& description);
ParameterCount count_parameters(const Model& model);
/// Returns the tokens of a sample; 0 if the model has no tokens.
std::uint64_t tokens_per_sample(const Model& model);
/// Returns the time at which an NPU starts.
Time start_of(const Model& model, NpuId npu, std::uint32_t num_npus);

/// Returns the bytes of an operand or result of a product, with the scales of its blocks.
std::uint64_t operand_bytes(Precision precision, std::uint64_t values);
/// Returns the bytes of a value that is communicated or kept, and of a gradient.
std::uint64_t value_bytes(Precision precision);

}  // namespace orrery::workload
