#pragma once

#include <cstdint>
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

/// Equal collectives of a tensor-parallel group, one after the other.
struct GroupCollective {
  trace::CollectiveKind kind{};
  Bytes bytes;              ///< bytes of a node, as traces have them
  std::uint64_t count = 1;  ///< number of these collectives
};

/// A part of a step on one NPU: its compute operators, and the collectives between them. None overlap.
struct StepPart {
  Time compute;
  std::vector<GroupCollective> collectives;
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

  /// Returns the work of the embedding and of all layers for this many tokens, without the cores of attention.
  StepPart layers(std::uint64_t tokens) const;
  /// Returns the work of the output layer for the last tokens of this many requests.
  StepPart output(std::uint64_t requests) const;
  /// Returns the time of the cores of attention of all layers in which this many requests, 1 or more, have one token
  /// each; `context` is the number of all tokens before these.
  Time decoding_cores(std::uint64_t requests, std::uint64_t context) const;
  /// Returns the time of the cores of all layers for several tokens of one request behind `context` others.
  Time chunk_cores(std::uint64_t tokens, std::uint64_t context) const;

 private:
  Parallel parallel(Phase phase, std::uint64_t samples) const;
  /// Adds `count` layers like this one to a part of a step.
  void add(StepPart& part, const Layer& layer, std::uint64_t count) const;

  Transformer model_;
  std::uint32_t tp_;
  StoredNumbers numbers_;
  const compute::ComputeModel& compute_;
};

}  // namespace orrery::workload
