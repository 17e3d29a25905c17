#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/trace/graph.hpp"

namespace orrery::npu {

/// For what an NPU waits while communication is in progress and neither its compute resource nor its CPU is busy. The
/// first ones are collectives of the group kinds of docs/workloads.md.
enum class Cause : std::uint8_t {
  tensor,
  sequence,  ///< all-gathers and reduce-scatters of a tensor group: sequence parallelism
  context,
  expert,
  data,
  pipeline,    ///< the data of a send or a receive are under way
  bubble,      ///< the sender of a receive has not sent yet
  stragglers,  ///< another member of a collective has not joined yet
  other,       ///< collectives of groups whose names say no kind
};
constexpr std::size_t num_causes = static_cast<std::size_t>(Cause::other) + 1;

/// Names for results and summaries, in the order of Cause.
constexpr std::array<std::string_view, num_causes> cause_names = {
    "tensor", "sequence", "context", "expert", "data", "pipeline", "bubble", "stragglers", "other"};

/// Returns the cause that the name of a group tells: its first word is that of the generator ("tp", "cp", "ep", "dp",
/// "edp" or "embedding", up to an underscore or the end), else `other`.
Cause cause_of_group(std::string_view name);

/// Returns the cause of an exposed collective of a group. `is_sharded`: it is an all-gather or a reduce-scatter.
constexpr Cause cause_of_collective(Cause group, bool is_sharded) {
  return group == Cause::tensor && is_sharded ? Cause::sequence : group;
}
/// Returns the cause of an exposed collective of a group, or of a send or a receive, which needs no group.
constexpr Cause cause_of(const trace::Node& node, Cause group) {
  using trace::CollectiveKind;
  if (node.kind == trace::NodeKind::send || node.kind == trace::NodeKind::receive) return Cause::pipeline;
  return cause_of_collective(
      group, node.collective == CollectiveKind::all_gather || node.collective == CollectiveKind::reduce_scatter);
}

/// Returns for what an NPU waits until what it awaits is there.
constexpr Cause waiting_for(Cause cause) { return cause == Cause::pipeline ? Cause::bubble : Cause::stragglers; }

}  // namespace orrery::npu
