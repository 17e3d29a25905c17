#include "recorded_starts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "orrery/base/text.hpp"

namespace orrery::app {

void keep_starts(std::span<trace::NpuTrace> traces, trace::Store& store, Notices& notices,
                 parallel::Communicator& world) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  std::int64_t latest_and_earliest[2] = {-never, -never};  // the second is negative
  std::int64_t longest = 0;
  for (const trace::NpuTrace& trace : traces)
    if (trace.recorded) {
      latest_and_earliest[0] = std::max(latest_and_earliest[0], trace.recorded->start_ns);
      latest_and_earliest[1] = std::max(latest_and_earliest[1], -trace.recorded->start_ns);
      longest = std::max(longest, trace.recorded->length_ns);
    }
  world.maximum(latest_and_earliest);
  world.maximum(std::span(&longest, 1));
  if (latest_and_earliest[0] == -never) return;
  const std::int64_t earliest = -latest_and_earliest[1], spread = latest_and_earliest[0] - earliest;
  if (spread == 0) return;
  if (spread > longest) {
    if (world.is_root())
      notices.add("recording-clocks", 0,
                  fmt::format("the recordings of the ranks begin {} apart, longer than a step: their clocks "
                              "differ, and all ranks begin together",
                              readable(Time::from_ps(spread > never / 1000 ? never : spread * 1000))));
    return;
  }
  for (trace::NpuTrace& trace : traces)
    if (trace.recorded) store.delay(trace, Time::from_ps((trace.recorded->start_ns - earliest) * 1000));
}

}  // namespace orrery::app
