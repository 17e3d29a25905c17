#include "orrery/model/reduction_groups.hpp"

#include <algorithm>
#include <cstdint>

#include "orrery/collective/collective.hpp"
#include "orrery/communicator/spec.hpp"

namespace orrery::model {
namespace {

bool has_switch_operations(const topology::Topology& topology) {
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d)
    if (topology.dimension(d).in_switch_operations > 0) return true;
  return false;
}

}  // namespace

network::Options with_reduction_groups(const npu::RunContext& run) {
  network::Options options = run.options.network;
  if (!options.model->sends_packets || !has_switch_operations(run.topology())) return options;
  for (const communicator::CommunicatorSpec& spec : run.communicators) {
    const auto layout = layout_of(run.engine, *spec.group, spec.dimensions, spec.custom);
    for (const auto& group : groups_in_switches(run.engine, *layout)) {
      network::ReductionGroup& added = options.reduction_groups.emplace_back();
      added.communicator = spec.id;
      for (const std::uint32_t member : group) added.members.push_back(spec.member(member));
      std::ranges::sort(added.members);
    }
  }
  return options;
}

}  // namespace orrery::model
