#include "orrery/npu/connected.hpp"

#include <algorithm>
#include <array>
#include <boost/pending/disjoint_sets.hpp>
#include <span>

namespace orrery::npu {

std::vector<std::uint32_t> positions_among_connected(std::span<const NpuSpec> npus, std::uint32_t num_npus,
                                                     parallel::Communicator& world) {
  using Pair = std::array<std::uint32_t, 2>;
  std::vector<Pair> pairs;
  for (const NpuSpec& npu : npus)
    for (const NpuId peer : npu.trace->peers)
      if (npu.id < peer) pairs.push_back({npu.id.value(), peer.value()});
  std::ranges::sort(pairs);
  const auto repeated = std::ranges::unique(pairs);
  pairs.erase(repeated.begin(), repeated.end());
  boost::disjoint_sets_with_storage<> connected(num_npus);
  for (const auto& [npu, peer] : world.all_gather(std::span<const Pair>(pairs))) connected.union_set(npu, peer);
  std::vector<std::uint32_t> sizes(num_npus), positions;
  positions.reserve(num_npus);
  for (std::uint32_t npu = 0; npu < num_npus; ++npu) positions.push_back(sizes[connected.find_set(npu)]++);
  return positions;
}

}  // namespace orrery::npu
