#pragma once

#include <cstdint>

#include "orrery/base/quantity.hpp"
#include "orrery/compute/options.hpp"

namespace orrery::compute {

/// Recorded durations of 0 become this (docs/model.md, 2).
constexpr Time shortest_recorded = Time::from_ns(1);

/// A compute node's time under the roofline (Williams et al., CACM 52(4), 2009), with a ceiling for each level of
/// memory (hierarchical roofline: Yang et al., arXiv 2009.05257): num_ops / min(peak, bandwidth of the level * num_ops
/// / bytes that pass it), plus the largest latency of these levels. All bytes pass the cache, if there is one; those of
/// a node whose tensor_size is more than the cache holds also pass the expanded memory, its share of them, or the local
/// one. Without num_ops the node moves its bytes only. Without tensor_size it takes no time under `astra-sim` rules,
/// and num_ops / peak under `physical` ones.
Time roofline_time(std::uint64_t num_ops, Bytes tensor_size, const Options& options);

}  // namespace orrery::compute
