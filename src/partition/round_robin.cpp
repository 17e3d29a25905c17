#include <utility>
#include <vector>

#include "orrery/partition/strategy.hpp"

namespace orrery::partition {
namespace {

Partition make_round_robin(std::string_view, const Problem& problem) {
  ensure(problem.num_ranks > 0, "a partition needs at least one rank");
  std::vector<Rank> ranks(problem.topology.num_npus());
  for (std::size_t npu = 0; npu < ranks.size(); ++npu)
    ranks[npu] = Rank(static_cast<int>(npu % static_cast<std::size_t>(problem.num_ranks)));
  return {std::move(ranks), problem.num_ranks};
}

}  // namespace

Strategy round_robin() {
  return {.name = "round-robin",
          .example = "round-robin",
          .help = "one NPU after the other: rank i mod R",
          .make = make_round_robin};
}

}  // namespace orrery::partition
