#include "orrery/partition/contiguous.hpp"

#include <utility>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::partition {

Partition contiguous(std::uint32_t num_npus, std::uint32_t length, int num_ranks) {
  ensure(num_ranks > 0, "a partition needs at least one rank");
  const std::uint64_t num_sets = num_npus / length;
  std::vector<Rank> ranks(num_npus);
  for (std::uint32_t npu = 0; npu < num_npus; ++npu)
    ranks[npu] = Rank(static_cast<int>(npu / length * static_cast<std::uint64_t>(num_ranks) / num_sets));
  return {std::move(ranks), num_ranks};
}

}  // namespace orrery::partition
