#pragma once

#include <cstdint>

#include "orrery/base/quantity.hpp"

namespace orrery::device {

/// How long a compute node takes.
struct ComputeOptions {
  /// On: num_ops / min(peak, local memory bandwidth * num_ops / tensor_size). Off: the recorded duration.
  bool roofline = false;
  double peak_flops = 0;   ///< per second; needed with roofline
  Bandwidth local_memory;  ///< needed with roofline
  double local_memory_latency_ns = 0;

  /// Throws Error (bad_input) that names the key.
  void validate() const;
};

enum class RemoteMemoryKind : std::uint8_t { none, per_npu, per_node, pool };

struct RemoteMemoryOptions {
  RemoteMemoryKind kind = RemoteMemoryKind::none;
  Bandwidth bandwidth;
  double latency_ns = 0;
  std::uint32_t npus_per_node = 0;  ///< per_node: needed

  /// Throws Error (bad_input) that names the key; npus_per_node must divide num_npus.
  void validate(std::uint32_t num_npus) const;
};

}  // namespace orrery::device
