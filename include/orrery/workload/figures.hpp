#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "orrery/trace/graph.hpp"
#include "orrery/workload/description.hpp"

namespace orrery::workload {

/// Bytes on one NPU.
struct Memory {
  std::uint64_t parameters = 0, gradients = 0, optimizer = 0;
  std::uint64_t activations = 0;  ///< at their peak

  std::uint64_t total() const { return parameters + gradients + optimizer + activations; }
};

/// What the nodes of one kind on one NPU come to.
struct Traffic {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  ///< sum of comm_size or tensor_size

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

/// One pipeline stage, per NPU.
struct StageFigures {
  std::uint64_t nodes = 0;
  std::uint64_t flops = 0;  ///< of all compute nodes
  Memory memory;            ///< local
  Memory remote;            ///< what is offloaded
  /// By "all-reduce tp", "send pp", ...; "load" and "store" of its own, "load with all-gather dp", ... on the path.
  std::map<std::string, Traffic> traffic;
};

/// What a description comes to.
struct Figures {
  std::uint32_t num_npus = 0;
  std::uint64_t parameters = 0;         ///< of the model
  std::uint64_t active_parameters = 0;  ///< that a token or sample passes: less than all with experts
  std::uint64_t samples = 0;            ///< of a step
  std::uint64_t tokens = 0;             ///< of a step; samples if the model has no sequence
  double model_flops = 0;               ///< of a step: forward and twice that backward, nothing computed again
  double executed_flops = 0;            ///< of all compute nodes of all NPUs
  std::vector<StageFigures> stages;     ///< [pp]
};

/// Throws Error (bad_input) as Description::validate. Cost O(nodes) for each stage.
Figures figures(const Description& description);

/// "[tp 8, dp 2, pp 4]": the placement of groups, innermost first.
std::string placement_text(const Parallel& parallel);

/// The figures as a table for people.
std::string report(const Description& description, const Figures& figures);

}  // namespace orrery::workload
