#pragma once

#include "orrery/base/quantity.hpp"

namespace orrery::compute {

/// On the processor: all bytes pass it, and those of nodes that it holds nothing else.
struct CacheOptions {
  Bytes size;  ///< 0: there is none
  Bandwidth bandwidth;
  double latency_ns = 0;
};

/// What an NPU's load and store instructions reach besides its local memory, as over CXL.
struct ExpandedMemoryOptions {
  double share = 0;  ///< of the bytes that a node moves, below 1; 0: there is none
  Bandwidth bandwidth;
  double latency_ns = 0;
};

/// How long a compute node takes.
struct Options {
  /// On: as compute::roofline_time says. Off: the recorded duration.
  bool roofline = false;
  double peak_flops = 0;   ///< per second; needed with roofline
  Bandwidth local_memory;  ///< needed with roofline
  double local_memory_latency_ns = 0;
  CacheOptions cache = {};
  ExpandedMemoryOptions expanded = {};
  Rounding rounding = Rounding::up_to_ps;
  /// Nodes without tensor_size take no time, whatever they compute; else num_ops / peak.
  bool ignore_nodes_without_bytes = false;

  /// Throws Error (bad_input) that names the key.
  void validate() const;
};

}  // namespace orrery::compute
