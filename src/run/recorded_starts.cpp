#include "orrery/run/recorded_starts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "orrery/base/text.hpp"
#include "recorded_clocks.hpp"

namespace orrery::run {

namespace {

/// Throws Error (bad_input) if the NPUs do not execute the same step of their recordings. Collective.
void check_steps(std::span<const NpuId> npus, std::span<const trace::NpuTrace> traces, parallel::Communicator& world) {
  constexpr std::int64_t none = -1;
  std::int64_t extremes[] = {none, std::numeric_limits<std::int64_t>::min()};  // step and NPU: largest, less smallest
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (const auto& recorded = traces[i].recorded; recorded && recorded->step) {
      const auto both = static_cast<std::int64_t>(std::uint64_t{*recorded->step} << 32U | npus[i].value());
      extremes[0] = std::max(extremes[0], both);
      extremes[1] = std::max(extremes[1], -both);
    }
  world.maximum(extremes);
  if (extremes[0] == none) return;
  const std::int64_t last = extremes[0], first = -extremes[1];
  if (last >> 32U == first >> 32U) return;
  world.agree([&] {
    if (!world.is_root()) return;
    throw Error(ErrorCode::bad_input, {.npu = static_cast<std::uint32_t>(first)},
                fmt::format("the recording's last step is ProfilerStep#{}, but that of NPU {} is ProfilerStep#{}",
                            first >> 32U, static_cast<std::uint32_t>(last), last >> 32U),
                "the same step of all ranks", "--step N (workload.step) chooses a step that all recordings hold.");
  });
}

}  // namespace

std::vector<Time> keep_starts(std::span<const NpuId> npus, std::span<trace::NpuTrace> traces, trace::Store& store,
                              Notices& notices, parallel::Communicator& world) {
  check_steps(npus, traces, world);
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  const auto readable_ns = [](std::int64_t ns) {
    return readable(Time::from_ps(ns > never / 1000 ? never : ns * 1000));
  };
  const std::vector<std::int64_t> offsets = clock_offsets(npus, traces, store, world);
  // The latest and the earliest start, the largest offset of a clock to either side, and the longest recording.
  std::int64_t extremes[] = {-never, -never, 0, 0, 0};
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (const auto& recorded = traces[i].recorded) {
      const std::int64_t start = recorded->start_ns - offsets[i];
      const std::int64_t values[] = {start, -start, offsets[i], -offsets[i], recorded->length_ns};
      for (std::size_t k = 0; k < std::size(extremes); ++k) extremes[k] = std::max(extremes[k], values[k]);
    }
  world.maximum(extremes);
  const auto& [latest, negative_earliest, ahead, behind, longest] = extremes;
  if (latest == -never) return {};
  if (ahead + behind > longest / 100 && world.is_root())
    notices.add("recording-clocks", 0,
                fmt::format("the clocks of the recordings differ by up to {}: they are set by the ends of the "
                            "collectives and messages that ranks share",
                            readable_ns(ahead + behind)));
  const std::int64_t earliest = -negative_earliest, spread = latest - earliest;
  if (spread == 0) return {};
  if (spread > longest) {
    if (world.is_root())
      notices.add(
          "recording-starts", 0,
          fmt::format("the recordings of the ranks begin {} apart, longer than a step, and share no collectives "
                      "that could set their clocks: all ranks begin together",
                      readable_ns(spread)));
    return {};
  }
  std::vector<Time> delays(traces.size());
  for (std::size_t i = 0; i < traces.size(); ++i)
    if (const auto& recorded = traces[i].recorded) {
      delays[i] = Time::from_ps((recorded->start_ns - offsets[i] - earliest) * 1000);
      store.delay(traces[i], delays[i]);
    }
  return delays;
}

}  // namespace orrery::run
