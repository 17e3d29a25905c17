#include "orrery/npu/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::npu {

double Options::highest_speed() const { return compute_speed.empty() ? 1 : *std::ranges::max_element(compute_speed); }

// The factors are multiplied in the order of Npu::compute_time, so that the bound holds to the last bit.
double Options::least_factor() const {
  double factor = 1 - noise.amplitude;
  factor *= noise.variations.lowest(DrawnPer::step);
  factor *= noise.variations.lowest(DrawnPer::node);
  return factor;
}

Bytes Options::room() const {
  const Bytes left = local_memory.size - std::min(local_memory.reserved, local_memory.size);
  if (compute.expanded.share == 0) return left;
  return Bytes(static_cast<std::uint64_t>(static_cast<double>(left.count()) / (1 - compute.expanded.share)));
}

void Options::validate() const {
  if (!replay_only) compute.validate();
  if (compute_streams == 0) throw Error(ErrorCode::bad_input, {.key = "compute-streams"}, "found 0", "1 or more");
  if (iterations == 0) throw Error(ErrorCode::bad_input, {.key = "iterations"}, "found 0", "1 or more");
  if (!(noise.amplitude >= 0 && noise.amplitude < 1))
    throw Error(ErrorCode::bad_input, {.key = "noise"}, fmt::format("found {}", noise.amplitude),
                "0 or more and below 1");
  for (const double speed : compute_speed)
    if (!(speed >= 1e-6 && speed <= 1e6))
      throw Error(ErrorCode::bad_input, {.key = "compute-speed"}, fmt::format("found {}", speed), "1e-6 to 1e6");
  if (comm_streams == 0) throw Error(ErrorCode::bad_input, {.key = "comm-streams"}, "found 0", "1 or more");
}

}  // namespace orrery::npu
