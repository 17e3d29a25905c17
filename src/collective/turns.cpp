#include "turns.hpp"

#include <algorithm>

#include "dimension_order.hpp"
#include "orrery/collective/registry.hpp"
#include "routes.hpp"

namespace orrery::collective {
namespace {

/// Returns the digit of a dimension with this queue and tree.
std::uint64_t placed(std::uint32_t dimension, std::uint32_t num_queues, std::uint64_t queue, bool is_odd_tree) {
  return (2 * queue + static_cast<std::uint64_t>(is_odd_tree)) * Turn::weight(dimension, num_queues);
}

}  // namespace

bool takes_turns_at_trees(const Options& options, Kind kind) {
  return std::ranges::any_of(algorithms_for(options, kind),
                             [](const Algorithm& algorithm) { return entry_of(algorithm).differs_for_odd_chunks; });
}

Turn that_counts(const Options& options, const GroupLayout& layout, Kind kind, Turn turn) {
  if (turn.digits == 0) return turn;
  const std::uint32_t queues = options.chunks.queues;
  const bool queues_count = options.rules.two_directions && queues > 1 && !goes_up_and_down(options, parent(kind));
  const bool trees_count = !layout.always_ring && takes_turns_at_trees(options, kind);
  Turn result;
  for (const std::uint32_t d : dimensions_of_turns(options, layout, kind))
    result.digits +=
        placed(d, queues, queues_count ? turn.queue(d, queues) : 0, trees_count && turn.is_odd_tree(d, queues));
  return result;
}

Turn after(const Options& options, const GroupLayout& layout, Kind kind, Turn turn, std::uint64_t num_chunks) {
  const std::uint32_t queues = options.chunks.queues;
  const std::uint64_t moves = queues > 1 && !goes_up_and_down(options, parent(kind)) ? num_chunks % queues : 0;
  const bool changes_tree = num_chunks % 2 == 1 && !layout.always_ring && takes_turns_at_trees(options, kind);
  if (moves == 0 && !changes_tree) return turn;
  for (const std::uint32_t d : dimensions_of_turns(options, layout, kind)) {
    const std::uint64_t queue = turn.queue(d, queues);
    const bool is_odd_tree = turn.is_odd_tree(d, queues);
    turn.digits -= placed(d, queues, queue, is_odd_tree);
    turn.digits += placed(d, queues, (queue + moves) % queues, is_odd_tree != changes_tree);
  }
  return turn;
}

Turn in_all_dimensions(const Options& options, const GroupLayout& layout, Kind kind, std::uint32_t queue,
                       bool is_odd_tree) {
  Turn result;
  for (const std::uint32_t d : dimensions_of_turns(options, layout, kind))
    result.digits += placed(d, options.chunks.queues, queue, is_odd_tree);
  return result;
}

}  // namespace orrery::collective
