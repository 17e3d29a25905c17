#include "orrery/communicator/report.hpp"

#include <tuple>

#include <fmt/format.h>

#include "orrery/base/text.hpp"
#include "orrery/collective/collective.hpp"

namespace orrery::communicator {

void require_same(const Report& first, const Report& other, const CommunicatorSpec& spec, const PlaceOf& place_of) {
  if (first.collective == other.collective && first.size == other.size) return;
  const auto& [low, high] = first.npu < other.npu ? std::tie(first, other) : std::tie(other, first);
  const auto describe = [](const Report& report) {
    return fmt::format("{} of {}", collective::name(static_cast<collective::Kind>(report.collective)),
                       counted(report.size, "byte"));
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
