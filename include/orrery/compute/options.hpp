#pragma once

#include "orrery/base/quantity.hpp"
#include "orrery/compute/model.hpp"

namespace orrery::compute {

/// A cache on the processor. All bytes pass it, and those of a node that it holds pass nothing else.
struct CacheOptions {
  Bytes size;  ///< 0: there is none
  Bandwidth bandwidth;
  double latency_ns = 0;
};

/// Memory that an NPU's load and store instructions reach besides its local memory, as over CXL.
struct ExpandedMemoryOptions {
  double share = 0;  ///< of the bytes that a node moves, below 1; 0: there is none
  Bandwidth bandwidth;
  double latency_ns = 0;
};

/// How long a compute node takes.
struct Options {
  ModelName model;
  // For models that compute durations (ModelType::uses_operations):
  double peak_flops = 0;  ///< per second
  Bandwidth local_memory;
  double local_memory_latency_ns = 0;
  CacheOptions cache = {};
  ExpandedMemoryOptions expanded = {};
  Rounding rounding = Rounding::up_to_ps;
  /// A node without bytes takes no time, whatever it computes; else num_ops / peak.
  bool ignore_nodes_without_bytes = false;
  double efficiency = 1;  ///< share of the peak that nodes reach at most

  /// Throws Error (bad_input) that names the key of an option with which the model cannot work.
  void validate() const {
    if (model->validate != nullptr) model->validate(*this);
  }
};

}  // namespace orrery::compute
