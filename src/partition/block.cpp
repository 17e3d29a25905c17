#include "contiguous.hpp"
#include "orrery/partition/strategy.hpp"

namespace orrery::partition {
namespace {

Partition make_blocks(std::string_view, const Problem& problem) {
  return contiguous(problem.topology.num_npus(), 1, problem.num_ranks);
}

}  // namespace

Strategy block() {
  return {.name = "block",
          .example = "block",
          .help = "contiguous blocks whose sizes differ by one at most: rank floor(i R / N)",
          .make = make_blocks};
}

}  // namespace orrery::partition
