#include "orrery/communicator/spec.hpp"

#include <algorithm>

namespace orrery::communicator {

std::vector<Rank> ranks_of(const CommunicatorSpec& spec, std::span<const Rank> host_of_npu) {
  std::vector<Rank> ranks;
  const auto& npus = spec.representatives ? spec.representatives->npus : spec.group->members;
  if (npus.empty()) ranks.assign(host_of_npu.begin(), host_of_npu.end());
  for (const NpuId npu : npus) ranks.push_back(host_of_npu[npu.index()]);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace orrery::communicator
