#include "orrery/compute/options.hpp"

#include "orrery/base/error.hpp"

namespace orrery::compute {

void Options::validate() const {
  if (!roofline) return;
  if (!(peak_flops > 0))
    throw Error(ErrorCode::bad_input, {.key = "peak-perf"}, "the roofline needs the peak performance",
                "a positive number", "Set it, or turn the roofline off to use recorded durations.");
  if (!(local_memory.bytes_per_ns() > 0))
    throw Error(ErrorCode::bad_input, {.key = "local-mem-bw"}, "the roofline needs the local memory bandwidth",
                "a positive number", "Set it, or turn the roofline off to use recorded durations.");
  const auto faster = [](Bandwidth one, Bandwidth other) { return one.bytes_per_ns() > other.bytes_per_ns(); };
  if (cache.size > Bytes(0) && !faster(cache.bandwidth, local_memory))
    throw Error(ErrorCode::bad_input, {.key = "system.compute.cache.bandwidth"},
                "the cache is not faster than the local memory", "more than system.compute.local-memory.bandwidth");
  if (expanded.share > 0 && !(expanded.bandwidth.bytes_per_ns() > 0))
    throw Error(ErrorCode::bad_input, {.key = "system.compute.expanded-memory.bandwidth"}, "there is none",
                "a positive number");
}

}  // namespace orrery::compute
