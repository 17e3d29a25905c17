#pragma once

#include "orrery/workload/model.hpp"
#include "orrery/workload/parallel.hpp"

namespace orrery::workload {

/// What is trained and how the training is divided.
struct Description {
  Model model;
  Parallel parallel;

  /// Throws Error (bad_input) that names the key of CONFIG.yaml.
  void validate() const;
  /// Says whether the model gives times in place of FLOPs, which only a system without a roofline takes as they are.
  bool has_times() const;

  friend bool operator==(const Description&, const Description&) = default;
};

/// Says whether NPUs that exchange tokens with each other are in several nodes. A node has `npus_of_node` NPUs with
/// consecutive numbers.
bool exchanges_over_nodes(const Parallel& parallel, std::uint32_t npus_of_node);

}  // namespace orrery::workload
