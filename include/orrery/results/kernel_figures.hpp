#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "orrery/results/results.hpp"

namespace orrery::results {

/// What keeps a run from being faster.
enum class Limit : std::uint8_t {
  one_rank,   ///< there is one rank, which waits for nobody
  imbalance,  ///< some ranks have more events than others
  messages,   ///< ranks exchange too many messages for their events
  waiting,    ///< ranks wait for each other, though they have equal work
  work,       ///< ranks are busy with events
};
/// Returns "one rank", "imbalance", "messages", "waiting" or "work".
std::string_view name(Limit limit);

/// What follows from the kernel's figures on all ranks.
struct KernelFigures {
  KernelRecord total;        ///< sums; peaks and the critical path are the largest of a rank
  double null_per_data = 0;  ///< null messages per data message; without data messages, as if there were one
  double null_per_100_events = 0;
  double messages_per_100_events = 0;  ///< data and null messages
  double blocked_share = 0;            ///< share of the ranks' time, 0 to 1
  double efficiency = 1;               ///< events / (ranks * largest events of a rank)
  double best_speedup = 1;             ///< events / critical path: over one rank, for any number of ranks
  Limit limit = Limit::one_rank;
};

/// Computes the figures of a run from the records of its ranks. The limit is given by the first of these rules that
/// holds:
/// - imbalance: ranks are blocked for a tenth of their time or more, and uneven events (1 - efficiency) make up at
///   least half of that;
/// - messages: more than one null message per data message and per hundred events, or more than ten messages of any
///   kind per hundred events;
/// - waiting: ranks are blocked for a tenth of their time or more;
/// - work: none of the rules above holds.
KernelFigures kernel_figures(std::span<const KernelRecord> ranks);

}  // namespace orrery::results
