#include <vector>

#include "group_layout.hpp"
#include "orrery/topology/circuits.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::collective {

std::vector<NpuId> positions_of(const topology::Circuits& circuits, const trace::Group& group) {
  const std::uint32_t configuration = circuits.of_group(group.name);
  std::vector<NpuId> positions;
  for (const NpuId npu : group.members) positions.push_back(circuits.position_of(configuration, npu));
  for (std::uint32_t npu = 0; group.members.empty() && npu < circuits.num_npus(); ++npu)
    positions.push_back(circuits.position_of(configuration, NpuId(npu)));
  return positions;
}

}  // namespace orrery::collective
