#include "orrery/partition/partition.hpp"

#include "orrery/base/error.hpp"

namespace orrery::partition {

Partition::Partition(std::vector<Rank> ranks, int num_ranks) : ranks_(std::move(ranks)) {
  ensure(num_ranks > 0, "a partition needs at least one rank");
  hosted_.resize(static_cast<std::size_t>(num_ranks));
  for (std::size_t npu = 0; npu < ranks_.size(); ++npu) {
    const Rank rank = ranks_[npu];
    ensure(rank.value() >= 0 && rank.value() < num_ranks, "a partition names a rank that does not exist");
    hosted_[rank.index()].push_back(NpuId(static_cast<std::uint32_t>(npu)));
  }
}

}  // namespace orrery::partition
