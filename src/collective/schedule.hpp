#pragma once

#include <cstdint>
#include <vector>

#include "orrery/collective/collective.hpp"
#include "ps.hpp"

namespace orrery::collective {

/// One phase of the chunks that take a route.
struct ChunkStage {
  std::uint32_t axis = 0;
  /// Queues of the axis that chunks take in turn: first_queue + t % num_queues, t counted per `turn`.
  std::uint32_t first_queue = 0;
  std::uint32_t num_queues = 1;
  std::uint32_t turn = 0;
  std::uint64_t in_service = 1;   ///< chunks at a time in each of these queues
  std::uint32_t phases_left = 1;  ///< this one included
  Bytes size;                     ///< size of the chunk as it enters the phase
  Ps duration[2] = {0, 0};        ///< durations of even and of odd chunks
  /// How much of the duration leaves the slot in the queue to the next chunk: what this chunk spends in latencies.
  Ps latency[2] = {0, 0};
};

/// The chunks to be served.
struct ChunkWork {
  struct StagesOfRoute {
    std::uint32_t first = 0, count = 0;
  };

  std::uint64_t num_chunks = 1;
  std::vector<std::uint32_t> route_of;  ///< [chunks]; empty: all take the only route
  std::vector<StagesOfRoute> routes;
  std::vector<ChunkStage> stages;  ///< stages of all routes

  const StagesOfRoute& route(std::uint64_t chunk) const { return routes[route_of.empty() ? 0 : route_of[chunk]]; }
};

/// How the queues serve chunks.
struct QueuePolicy {
  std::uint32_t queues = 1;  ///< queues per axis
  ChunkOrder order = ChunkOrder::fifo;
};

/// One chunk in one phase, and where its times are kept: arrays of [members] with an index each.
struct ScheduledService {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t chunk = 0;
  std::uint32_t stage = 0;           ///< among the stages of all routes
  std::uint32_t previous = none;     ///< array with the finishes of the chunk's previous phase; none: the arrivals
  std::uint32_t predecessor = none;  ///< array with when the slot in the queue became free; none: it always was
  std::uint32_t result = 0;          ///< array for the finishes; may be one of the two
  std::uint32_t left = none;         ///< array for when the slot becomes free, another one; none: at the finish
  std::uint32_t queue = 0;           ///< index of the queue that it waits in, counted over all axes
  bool is_last = false;              ///< last service of its chunk
};

/// The order in which the chunks of a collective are served when all members arrive together at 0 (docs/collectives.md,
/// Chunks and dimensions).
struct Schedule {
  std::vector<ScheduledService> services;  ///< each after those that it waits for
  std::uint32_t num_arrays = 0;            ///< arrays in use at a time
  Ps end = 0;                              ///< end of the last chunk
};

/// Serves chunks until all are through: every queue takes the waiting chunk that its order puts first. Cost O(chunks *
/// stages * log), or the square of that for an order that is not fifo.
Schedule make_schedule(const ChunkWork& work, const QueuePolicy& policy);

}  // namespace orrery::collective
