#include <utility>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/partition/short_links.hpp"
#include "orrery/partition/strategy.hpp"

namespace orrery::partition {
namespace {

Partition make_blocks(std::string_view, const Problem& problem) {
  ensure(problem.num_ranks > 0, "a partition needs at least one rank");
  const NpuSets sets = kept_together(problem.topology, problem.num_ranks);
  std::vector<Rank> ranks;
  for (const std::uint64_t set : sets.of_npu)
    ranks.emplace_back(static_cast<int>(set * static_cast<std::uint64_t>(problem.num_ranks) / sets.count));
  return {std::move(ranks), problem.num_ranks};
}

}  // namespace

Strategy block() {
  return {.name = "block",
          .example = "block",
          .help = "contiguous blocks: rank floor(i R / N); links of less than 20 ns stay within ranks if they can",
          .make = make_blocks};
}

}  // namespace orrery::partition
