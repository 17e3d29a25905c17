#include "orrery/device/options.hpp"

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::device {

void ComputeOptions::validate() const {
  if (!roofline) return;
  if (!(peak_flops > 0))
    throw Error(ErrorCode::bad_input, {.key = "peak-perf"}, "the roofline needs the peak performance",
                "a positive number", "Set it, or turn the roofline off to use recorded durations.");
  if (!(local_memory.bytes_per_ns() > 0))
    throw Error(ErrorCode::bad_input, {.key = "local-mem-bw"}, "the roofline needs the local memory bandwidth",
                "a positive number", "Set it, or turn the roofline off to use recorded durations.");
}

void RemoteMemoryOptions::validate(std::uint32_t num_npus) const {
  if (kind == RemoteMemoryKind::none) return;
  if (!(bandwidth.bytes_per_ns() > 0))
    throw Error(ErrorCode::bad_input, {.key = "remote-mem-bw"}, "the remote memory has no bandwidth",
                "a positive number");
  if (!(latency_ns >= 0))
    throw Error(ErrorCode::bad_input, {.key = "remote-mem-latency"}, fmt::format("found {}", latency_ns), "0 or more");
  if (kind == RemoteMemoryKind::per_node && (npus_per_node == 0 || num_npus % npus_per_node != 0))
    throw Error(ErrorCode::bad_input, {.key = "num-npus-per-node"}, fmt::format("found {}", npus_per_node),
                fmt::format("a divisor of the {} NPUs", num_npus));
}

}  // namespace orrery::device
