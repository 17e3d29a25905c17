#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "orrery/trace/graph.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// Bytes on one NPU.
struct MemoryUse {
  std::uint64_t parameters = 0, gradients = 0, optimizer = 0;
  std::uint64_t activations = 0;  ///< at their peak
  std::uint64_t cache = 0;        ///< inference: keys and values of all sequences

  std::uint64_t total() const { return parameters + gradients + optimizer + activations + cache; }
};

/// The sum over the nodes of one kind on one NPU.
struct CommunicationTotal {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  ///< bytes of comm_size or tensor_size

  friend bool operator==(const CommunicationTotal&, const CommunicationTotal&) = default;
};

/// The figures of one pipeline stage, per NPU.
struct StageFigures {
  std::uint64_t nodes = 0;
  std::uint64_t flops = 0;  ///< FLOPs of all compute nodes
  MemoryUse local;          ///< use of local memory
  MemoryUse remote;         ///< use of remote memory: offloaded states
  /// By "all-reduce tp", "send pp", ...; "load" and "store" of the NPU alone, "load with all-gather dp", ... on the
  /// path.
  std::map<std::string, CommunicationTotal> communication;
};

/// The figures of a whole description.
struct Figures {
  std::uint32_t num_npus = 0;
  std::uint64_t parameters = 0;         ///< parameters of the model
  std::uint64_t active_parameters = 0;  ///< parameters that a token or sample uses: fewer than all with experts
  std::uint64_t samples = 0;            ///< samples of a step
  std::uint64_t tokens = 0;             ///< tokens of a step; 0 if the model has no tokens
  double model_flops = 0;               ///< FLOPs of a step: forward, and twice that backward, without recomputation
  double executed_flops = 0;            ///< FLOPs of all compute nodes of all NPUs
  std::vector<StageFigures> stages;     ///< [pp]
};

/// How much a step trains or makes.
struct StepSize {
  std::uint64_t samples = 0, tokens = 0;  ///< tokens: 0 if the model has none
};
StepSize size_of_step(const Description& description);

/// Computes the figures but for those of stages, and leaves `executed_flops` 0. Throws Error (bad_input) as
/// Description::validate does. O(layers).
Figures figures_of_model(const Description& description);

/// Computes the figures. Throws Error (bad_input) as Description::validate does. Cost O(nodes) for each stage.
Figures figures(const Description& description);

/// Returns the placement of groups, from the innermost on: "[tp 8, dp 2, pp 4]".
std::string placement_text(const Parallel& parallel);

/// Returns the figures as a table for people.
std::string report(const Description& description, const Figures& figures);

}  // namespace orrery::workload
