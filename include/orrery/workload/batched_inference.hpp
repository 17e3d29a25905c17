#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"
#include "orrery/trace/graph.hpp"
#include "orrery/workload/parallel.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::compute {
class ComputeModel;
}

namespace orrery::workload {

struct Layer;

/// A collective of a tensor-parallel group.
struct GroupCollective {
  trace::CollectiveKind kind{};
  Bytes bytes;          ///< bytes of a node, as traces have them
  Time compute_before;  ///< compute operators since the collective before it, without the core of attention
  bool has_core_before = false;
};

/// A part of a step on one NPU: `count` equal layers, with their compute operators and the collectives between them.
/// None overlap.
struct StepPart {
  std::uint64_t count = 1;
  Time compute;
  std::vector<GroupCollective> collectives;
  bool has_attention = false;  ///< true if a core of attention comes on top
  bool has_experts = false;    ///< true for layers whose MLPs are experts
};

/// How an engine stores the numbers of products.
struct StoredNumbers {
  Precision products = Precision::bf16;  ///< precision in which products are computed
  double weight_bytes = 2;               ///< bytes of a weight in memory
  Precision cache = Precision::bf16;     ///< precision of stored keys and values
};

/// The steps of an inference engine that batches continuously: tokens of many requests pass the layers together, and
/// only the cores of attention depend on the requests. The operators are those of Phase::decode, and the cores of
/// chunks those of Phase::prefill, on each of `tp` NPUs of one stage.
class BatchedInference {
 public:
  /// The compute model must outlive the object.
  BatchedInference(Transformer model, std::uint32_t tp, const StoredNumbers& numbers,
                   const compute::ComputeModel& compute);

  /// Returns the embedding and the layers for this many tokens, without the cores of attention.
  std::vector<StepPart> layers(std::uint64_t tokens) const;
  /// Returns the output layer for the last tokens of this many requests; nothing if the model has none.
  std::optional<StepPart> output(std::uint64_t requests) const;
  /// Returns the time of the core of attention of a layer in which this many requests, 1 or more, have one token each;
  /// `context` is the number of all tokens before these.
  Time decoding_core(std::uint64_t requests, std::uint64_t context) const;
  /// Returns the time of such a core for several tokens of one request behind `context` others.
  Time chunk_core(std::uint64_t tokens, std::uint64_t context) const;

 private:
  Parallel parallel(Phase phase, std::uint64_t samples) const;
  /// Returns the part of a step that `count` layers like this one are.
  StepPart part_of(const Layer& layer, std::uint64_t count) const;

  Transformer model_;
  std::uint32_t tp_;
  StoredNumbers numbers_;
  const compute::ComputeModel& compute_;
};

}  // namespace orrery::workload
