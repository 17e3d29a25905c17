#include "orrery/communicator/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "orrery/base/text.hpp"
#include "orrery/collective/collective.hpp"

namespace orrery::communicator {

void agree(Report& first, const Report& other, bool may_be_uneven, const CommunicatorSpec& spec,
           const PlaceOf& place_of) {
  const bool is_uneven = may_be_uneven && other.collective == static_cast<std::uint8_t>(collective::Kind::all_to_all);
  if (first.collective == other.collective && (first.size == other.size || is_uneven)) {
    first.size = std::max(first.size, other.size);
    return;
  }
  const auto& [low, high] =
      first.npu < other.npu ? std::tie(std::as_const(first), other) : std::tie(other, std::as_const(first));
  const auto describe = [](const Report& report) {
    return fmt::format("{} of {}", collective::name(static_cast<collective::Kind>(report.collective)),
                       counted(report.size.count(), "byte"));
  };
  const Place there = place_of(NpuId(high.npu), high.node_id);
  throw Error(
      ErrorCode::bad_input, place_of(NpuId(low.npu), low.node_id),
      fmt::format("the members of {} disagree on their collective number {}: here it is {}, but {} at NPU {}, node {} "
                  "'{}' of {}",
                  trace::describe(*spec.group), first.ordinal + 1, describe(low), describe(high), high.npu,
                  high.node_id, there.node_name, there.file),
      "the same kind and size in the same order on all members",
      "No dependencies fix this order, so it is a matter of time: let the collectives of a group depend on each "
      "other.");
}

}  // namespace orrery::communicator
