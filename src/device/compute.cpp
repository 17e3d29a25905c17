#include "orrery/device/compute.hpp"

#include <algorithm>

namespace orrery::device {

Time roofline_time(std::uint64_t num_ops, Bytes tensor_size, const ComputeOptions& options, const Rules& rules) {
  const bool astra_sim = rules.rounding == Rounding::down_to_ns;
  if (tensor_size.count() == 0 && (astra_sim || num_ops == 0)) return Time::zero();
  const double ops = static_cast<double>(num_ops);
  const double bytes = static_cast<double>(tensor_size.count());
  const double memory = options.local_memory.bytes_per_ns() * 1e9;  // bytes per second
  double seconds = 0;
  if (num_ops == 0)
    seconds = bytes / memory;
  else if (tensor_size.count() == 0)
    seconds = ops / options.peak_flops;
  else
    seconds = ops / std::min(memory * (ops / bytes), options.peak_flops);  // in this order: exact under astra-sim rules
  return duration_from_ns(options.local_memory_latency_ns + seconds * 1e9, rules.rounding);
}

}  // namespace orrery::device
