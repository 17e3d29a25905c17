#pragma once

#include <cstdint>
#include <vector>

#include "ps.hpp"

namespace orrery::collective {

/// One phase that every chunk goes through, for the schedule.
struct Stage {
  std::uint32_t axis = 0;
  /// Queues of the axis that chunks take in turn: first_queue + t % num_queues, t counted per `turn`.
  std::uint32_t first_queue = 0;
  std::uint32_t num_queues = 1;
  std::uint32_t turn = 0;
  Ps duration[2] = {0, 0};  ///< of even and of odd chunks
};

/// One chunk in one phase, and where its times are kept: arrays of [members] with an index each.
struct Service {
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  std::uint32_t chunk = 0;
  std::uint32_t stage = 0;
  std::uint32_t previous = none;  ///< array with the finishes of the chunk's previous phase; none: the arrivals
  std::uint32_t predecessor =
      none;                  ///< array with the finishes of who held the place in the queue before; none: nobody
  std::uint32_t result = 0;  ///< array for the finishes; may be one of the two
};

/// The order in which the chunks of a collective are served when all members arrive together at 0 (docs/model.md, 7).
struct Schedule {
  std::vector<Service> services;  ///< each after those that it waits for
  std::uint32_t num_arrays = 0;   ///< that are in use at a time
  Ps end = 0;                     ///< of the last chunk
};

/// First come first served in each queue, `in_service` chunks at a time. O(chunks * stages * log).
Schedule make_schedule(const std::vector<Stage>& stages, std::uint64_t num_chunks, std::uint64_t in_service,
                       std::uint32_t queues);

}  // namespace orrery::collective
