#include "orrery/check/capacity.hpp"

#include <algorithm>
#include <compare>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::check {
namespace {

using memory::Residents;
using npu::NpuSpec;

struct Moment {
  Time time;
  NpuId npu;

  friend auto operator<=>(const Moment&, const Moment&) = default;
};

std::string describe(const memory::Residents& tensors, const npu::NpuSpec& npu, const trace::Store& store) {
  std::vector<std::string> parts;
  for (const std::uint32_t tensor : tensors.largest)
    parts.push_back(fmt::format("'{}' ({})", store.name(npu.trace->labels->tensors[tensor]),
                                binary_size(npu.trace->graph->tensors.sizes[tensor])));
  if (const auto more = tensors.count - tensors.largest.size(); more > 0) parts.push_back(fmt::format("{} more", more));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Error excess_of(const npu::NpuSpec& npu, std::string_view which, Bytes usage, Bytes size,
                const memory::Residents& tensors, const trace::Store& store) {
  return {ErrorCode::bad_input,
          Place{.file = store.file(*npu.trace), .npu = npu.id.value()},
          fmt::format("{} take {} ({} bytes), but the local memory has room for {} ({}): {}", which,
                      binary_size(usage.count()), usage.count(), binary_size(size.count()), size.count(),
                      describe(tensors, npu, store)),
          {},
          "Raise system.compute.local-memory.size, or have an NPU keep less; with --memory=report the run goes on and "
          "tells."};
}

}  // namespace

Error initial_excess(const npu::NpuSpec& npu, const trace::Store& store, Bytes size) {
  const auto& lifetimes = npu.program->lifetimes;
  return excess_of(npu, "the tensors that no node makes, which are there before the first one,", lifetimes.initial,
                   size, memory::residents_of(npu.trace->graph->tensors, lifetimes.is_initial), store);
}

void require_capacity(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world) {
  const auto excess = model.npus().excess();
  std::vector<Moment> mine;
  if (excess) mine.push_back({excess->since, excess->npu});
  const auto all = world.all_gather(std::span<const Moment>(mine));
  if (all.empty()) return;
  const auto first = *std::ranges::min_element(all);
  world.agree([&] {
    if (mine.empty() || mine.front() != first) return;
    const auto& npu = *std::ranges::find(model.run().npus, excess->npu, &npu::NpuSpec::id);
    throw excess_of(npu, fmt::format("at {} the tensors", readable(excess->since)), excess->usage,
                    model.run().options.room(), excess->tensors, store);
  });
}

}  // namespace orrery::check
