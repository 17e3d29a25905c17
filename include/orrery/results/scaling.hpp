#pragma once

#include <cstdint>
#include <string_view>

#include "orrery/results/load.hpp"

namespace orrery::results {

/// How fast ranks and the network between them are.
struct RankSpeed {
  double event_time = 0;    ///< s that a rank needs for an event
  double message_time = 0;  ///< s that a message takes from its sender, and again from its receiver
  double latency = 0;       ///< s from a rank to another one
};

/// What takes most of the time that ranks lose.
enum class ScalingLimit : std::uint8_t {
  events,        ///< nothing much: four fifths of the time or more are events
  imbalance,     ///< some ranks have more events than others
  dependencies,  ///< ranks wait for what others have not computed yet
  messages,      ///< ranks send and receive
  latency,       ///< ranks wait for messages that are under way
};
/// Returns "events", "imbalance", "dependencies", "messages" or "latency".
std::string_view name(ScalingLimit limit);

/// What is expected of a run on a number of ranks.
struct ScalingRow {
  std::uint32_t ranks = 1;
  std::uint64_t most_events = 0;     ///< largest number of events of a rank
  double mean_events = 0;            ///< mean number of events of a rank
  std::uint64_t events_sent = 0;     ///< to other ranks
  std::uint64_t posts_sent = 0;      ///< to other ranks: arrivals at collectives, and their replies
  std::uint64_t messages = 0;        ///< with these, at most
  std::uint64_t waits = 0;           ///< waits of all ranks
  double time = 0;                   ///< s, if a rank handles bins one after the other
  double time_ahead = 0;             ///< s, if blocks that wait for nothing run ahead as far as they can
  double speedup = 1;                ///< over one rank, by `time`
  double speedup_ahead = 1;          ///< over one rank, by `time_ahead`
  double efficiency = 1;             ///< speedup / ranks
  double time_without_messages = 0;  ///< s, `time` if messages took no time
  ScalingLimit limit = ScalingLimit::events;
};

/// Predicts a run on so many ranks, 1 to the number of blocks, to which the NPUs are dealt in contiguous blocks
/// (docs/scaling.md has the model). A block belongs to the rank of its first NPU. Cost
/// O(rows log rows + blocks * bins + replies * members).
ScalingRow predict_scaling(const Load& load, std::uint32_t ranks, const RankSpeed& speed);

}  // namespace orrery::results
