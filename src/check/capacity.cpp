#include "orrery/check/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <vector>

#include "orrery/base/text.hpp"
#include "orrery/check/excess.hpp"

namespace orrery::check {
namespace {

/// When an NPU exceeded its memory.
struct ExcessMoment {
  Time time;
  NpuId npu;

  friend auto operator<=>(const ExcessMoment&, const ExcessMoment&) = default;
};

}  // namespace

void require_capacity(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world) {
  const auto found = model.npus().excess();
  std::vector<ExcessMoment> mine;
  if (found) mine.push_back({found->since, found->npu});
  const auto all = world.all_gather(std::span<const ExcessMoment>(mine));
  if (all.empty()) return;
  const auto first = *std::ranges::min_element(all);
  world.agree([&] {
    if (mine.empty() || mine.front() != first) return;
    const auto& npu = *std::ranges::find(model.run().npus, found->npu, &npu::NpuSpec::id);
    throw excess(npu, fmt::format("at {} the tensors", readable(found->since)), found->usage,
                 model.run().options.room(), found->tensors, store);
  });
}

}  // namespace orrery::check
