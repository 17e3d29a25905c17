#include <fmt/format.h>

#include <bit>

#include "orrery/base/text.hpp"
#include "orrery/communicator/communications.hpp"
#include "preflight.hpp"

namespace orrery::check {
namespace {

void check_dimensions(const Subject& subject, Findings findings) {
  const auto num_dimensions = subject.run.topology().num_dimensions();
  const std::uint64_t beyond = num_dimensions < 64 ? trace::all_dimensions << num_dimensions : 0;
  constexpr std::uint64_t last = std::uint64_t{1} << 63;  // a list with this dimension names all further ones too
  NodesWhere nodes([beyond](const trace::Node& node) {
    return node.is_of_group() && (node.detail & last) == 0 && (node.detail & beyond) != 0;
  });
  for (const auto& npu : subject.run.npus)
    for (const NodeId id : nodes.of(*npu.trace->graph)) {
      const auto& node = npu.trace->graph->nodes[id.index()];
      const auto& group = subject.store.groups()[npu.trace->groups[node.slot].index()];
      if (communicator::ignores_dimensions(group)) continue;  // its dimensions are ignored
      findings.faults.add(
          Error(ErrorCode::bad_input, place_of(subject, npu, id),
                fmt::format("involved_dim names dimension {}, but the system has {}",
                            std::countr_zero(node.detail & beyond), counted(num_dimensions, "dimension")),
                fmt::format("dimensions 0 to {}", num_dimensions - 1)));
    }
}

}  // namespace

Check dimensions() {
  return {"dimensions", "a collective of all NPUs names a dimension that the system does not have",
          Check::Local(check_dimensions)};
}

}  // namespace orrery::check
