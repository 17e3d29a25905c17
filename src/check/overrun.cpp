#include "orrery/check/overrun.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "limits.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::check {
namespace {

std::string describe(const Overrun& overrun) {
  const auto since = readable(overrun.since);
  switch (overrun.quantity) {
    case Overrun::Quantity::time:
      return fmt::format("the node starts at {} and would end after more than {}", since, longest);
    case Overrun::Quantity::bytes_sent:
      return fmt::format(
          "with this node, which starts at {}, the NPU sends more than {} in all, the most that results "
          "hold",
          since, most_bytes);
    case Overrun::Quantity::peak_memory:
      return fmt::format(
          "with this node, which starts at {}, the operands in service exceed {}, the most that results "
          "hold",
          since, most_bytes);
  }
  ensure_failed("a quantity has a description", std::source_location::current());
}

}  // namespace

void require_no_overrun(const model::RankModel& model, const trace::Store& store, parallel::Communicator& world) {
  std::vector<Overrun> mine;
  if (model.overrun()) mine.push_back(*model.overrun());
  const auto all = world.all_gather(std::span<const Overrun>(mine));
  if (all.empty()) return;
  const Overrun first = *std::ranges::min_element(all);
  world.agree([&] {
    const auto npu = std::ranges::find(model.run().npus, first.npu, &npu::NpuSpec::id);
    if (npu == model.run().npus.end()) return;
    throw Error(ErrorCode::bad_input, store.place(*npu->trace, npu->id, first.node), describe(first), {},
                "Correct the durations and sizes of the traces, or simulate fewer iterations.");
  });
}

}  // namespace orrery::check
