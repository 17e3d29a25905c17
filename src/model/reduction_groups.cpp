#include "orrery/model/reduction_groups.hpp"

#include <algorithm>
#include <utility>

namespace orrery::model {

network::Options with_reduction_groups(network::Options options, collective::Engine& engine,
                                       std::span<const communicator::CommunicatorSpec> specs) {
  if (!options.model->sends_packets) return options;
  for (const communicator::CommunicatorSpec& spec : specs) {
    const auto layout = layout_of(engine, *spec.group, spec.dimensions, spec.custom);
    for (const auto& group : groups_in_switches(engine, *layout)) {
      network::ReductionGroup& added = options.reduction_groups.emplace_back();
      added.communicator = spec.id;
      for (const std::uint32_t member : group) added.members.push_back(spec.member(member));
      std::ranges::sort(added.members);
    }
  }
  return options;
}

}  // namespace orrery::model
