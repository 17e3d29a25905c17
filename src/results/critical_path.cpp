#include "orrery/results/critical_path.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "orrery/npu/work.hpp"
#include "orrery/results/breakdown.hpp"

namespace orrery::results {
namespace {

using npu::TimelineRecord;
using npu::Work;

std::size_t part_of(const TimelineRecord& node) {
  switch (npu::work_of(node.kind)) {
    case Work::compute:
      return 0;
    case Work::cpu:
    case Work::host:
      return 1;
    case Work::memory:
      return memory_part;
    default:
      return first_cause_part + static_cast<std::size_t>(node.cause);
  }
}

/// Finds nodes of an NPU by the time at which they finish.
class Finishes {
 public:
  explicit Finishes(std::span<const TimelineRecord> timeline) : timeline_(timeline) {}

  /// Returns the node that finishes last of those that begin before `time` and have finished by then; of equal ones the
  /// longest, then the one with the lowest id. None if there is no such node.
  const TimelineRecord* last_by(NpuId npu, Time time) {
    const auto& nodes = of(npu);
    auto after = std::ranges::upper_bound(nodes, time, {}, &TimelineRecord::finish);
    while (after != nodes.begin() && std::prev(after)->start == std::prev(after)->finish) --after;
    return after == nodes.begin() ? nullptr : &*std::prev(after);
  }

 private:
  const std::vector<TimelineRecord>& of(NpuId npu) {
    const auto [found, is_new] = sorted_.try_emplace(npu.value());
    if (is_new) {
      const auto rows = std::ranges::equal_range(timeline_, npu, {}, &TimelineRecord::npu);
      found->second.assign(rows.begin(), rows.end());
      std::ranges::sort(found->second, [](const TimelineRecord& a, const TimelineRecord& b) {
        return std::tuple(a.finish, b.start, b.node) < std::tuple(b.finish, a.start, a.node);
      });
    }
    return found->second;
  }

  std::span<const TimelineRecord> timeline_;
  std::map<std::uint32_t, std::vector<TimelineRecord>> sorted_;
};

}  // namespace

std::vector<PathSegment> critical_path(std::span<const TimelineRecord> timeline) {
  std::vector<PathSegment> path;
  if (timeline.empty()) return path;
  Finishes finishes(timeline);
  const TimelineRecord& end = *std::ranges::max_element(timeline, {}, &TimelineRecord::finish);
  NpuId npu = end.npu;
  Time time = end.finish;
  // A message that takes no time leads to another NPU at the same time: there are not more of those than rows.
  for (std::size_t steps = 0; time > Time::zero() && steps < timeline.size(); ++steps) {
    const TimelineRecord* const node = finishes.last_by(npu, time);
    const Time finish = node ? node->finish : Time::zero();
    if (finish < time) path.push_back({finish, time, npu, 0, idle_part, 0});
    if (!node) break;
    const bool waited = node->last.npu != npu && node->last.time > node->start;
    const Time start = waited ? std::min(node->last.time, finish) : node->start;
    if (start < finish) path.push_back({start, finish, npu, node->node, part_of(*node), node->name});
    if (waited) npu = node->last.npu;
    time = start;
  }
  std::ranges::reverse(path);
  return path;
}

}  // namespace orrery::results
