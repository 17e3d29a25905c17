#include "orrery/compute/roofline.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace orrery::compute {
namespace {

/// What a node moves in a level of memory.
struct Passage {
  double bytes;
  Bandwidth bandwidth;
  double latency_ns;
};

/// All levels; no bytes pass those that a node does not use.
std::array<Passage, 3> passages(Bytes tensor_size, const Options& options) {
  const auto& [cache, expanded] = std::tie(options.cache, options.expanded);
  const double bytes = static_cast<double>(tensor_size.count());
  const double beyond = tensor_size <= cache.size ? 0 : bytes;
  return {{{beyond * (1 - expanded.share), options.local_memory, options.local_memory_latency_ns},
           {beyond * expanded.share, expanded.bandwidth, expanded.latency_ns},
           {cache.size > Bytes(0) ? bytes : 0, cache.bandwidth, cache.latency_ns}}};
}

}  // namespace

Time roofline_time(std::uint64_t num_ops, Bytes tensor_size, const Options& options) {
  if (tensor_size.count() == 0 && (options.ignore_nodes_without_bytes || num_ops == 0)) return Time::zero();
  const double ops = static_cast<double>(num_ops);
  double rate = options.peak_flops;  // FLOPs per second
  double moving = 0;                 // seconds
  double latency_ns = tensor_size.count() == 0 ? options.local_memory_latency_ns : 0;
  for (const auto& [bytes, bandwidth, level_latency_ns] : passages(tensor_size, options)) {
    if (bytes == 0) continue;
    const double speed = bandwidth.bytes_per_ns() * 1e9;  // bytes per second
    rate = std::min(speed * (ops / bytes), rate);         // in this order: exact under astra-sim rules
    moving = std::max(bytes / speed, moving);
    latency_ns = std::max(level_latency_ns, latency_ns);
  }
  const double seconds = num_ops == 0 ? moving : ops / rate;
  return duration_from_ns(latency_ns + seconds * 1e9, options.rounding);
}

}  // namespace orrery::compute
