#include "turns.hpp"

#include <algorithm>

#include "dimension_order.hpp"
#include "orrery/collective/registry.hpp"
#include "routes.hpp"

namespace orrery::collective {
namespace {

/// Returns whether even and odd chunks of collectives of a kind go over different trees.
bool takes_turns_at_trees(const Options& options, Kind kind) {
  return std::ranges::any_of(algorithms_for(options, kind),
                             [](const Algorithm& algorithm) { return entry_of(algorithm).differs_for_odd_chunks; });
}

/// Returns Turn::queues with queue_of(d) in each dimension d that a collective uses, and 0 in the others.
template <class QueueOf>
std::uint64_t queues_from(const Options& options, const GroupLayout& layout, Kind kind, const QueueOf& queue_of) {
  std::uint64_t queues = 0;
  for (const std::uint32_t d : dimensions_of_turns(options, layout, kind))
    queues += std::uint64_t{queue_of(d)} * Turn::weight(d, options.chunks.queues);
  return queues;
}

}  // namespace

Turn that_counts(const Options& options, const GroupLayout& layout, Kind kind, Turn turn) {
  const std::uint32_t queues = options.chunks.queues;
  if (!options.rules.two_directions || queues == 1 || goes_up_and_down(options, parent(kind)))
    turn.queues = 0;
  else if (turn.queues > 0)
    turn.queues = queues_from(options, layout, kind, [&](std::uint32_t d) { return turn.queue(d, queues); });
  if (!takes_turns_at_trees(options, kind)) turn.is_odd_tree = false;
  return turn;
}

Turn after(const Options& options, const GroupLayout& layout, Kind kind, Turn turn, std::uint64_t num_chunks) {
  const std::uint32_t queues = options.chunks.queues;
  if (queues > 1 && !goes_up_and_down(options, parent(kind)))
    for (const std::uint32_t d : dimensions_of_turns(options, layout, kind)) {
      const std::uint64_t queue = turn.queue(d, queues), next = (queue + num_chunks) % queues;
      turn.queues = turn.queues - queue * Turn::weight(d, queues) + next * Turn::weight(d, queues);
    }
  if (takes_turns_at_trees(options, kind)) turn.is_odd_tree ^= num_chunks % 2 == 1;
  return turn;
}

std::uint64_t same_queue(const Options& options, const GroupLayout& layout, Kind kind, std::uint32_t queue) {
  return queues_from(options, layout, kind, [queue](std::uint32_t) { return queue; });
}

}  // namespace orrery::collective
