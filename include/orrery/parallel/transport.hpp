#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/parallel/communicator.hpp"

namespace orrery::parallel {

/// Non-blocking messages between ranks, in order on each channel, one non-blocking reduction at a time, and one sum.
/// Nothing here but `end_beats` waits for another rank, so no order of calls can deadlock.
class Transport {
 public:
  using Receiver = std::function<void(Rank from, std::span<const std::byte> message)>;

  virtual ~Transport() = default;

  /// Sends a copy of `message`; its buffer comes from a pool and goes back to it. O(bytes).
  virtual void send(Rank to, std::span<const std::byte> message) = 0;
  /// Returns the bytes of the messages that this rank has sent and still keeps, because no receiver has taken them: 0
  /// if they are at most `most`, as it then need not look. O(messages) else.
  virtual std::uint64_t bytes_under_way([[maybe_unused]] std::uint64_t most) { return 0; }
  /// Delivers the arrived messages and returns their number.
  virtual int poll(const Receiver& receiver) = 0;

  /// Contributes to a reduction that every rank joins sooner or later. `minima` and `sums` keep their size for the life
  /// of the transport. One at a time.
  virtual void start_reduction(std::span<const std::int64_t> minima, std::span<const std::int64_t> sums) = 0;
  struct Reduced {
    std::span<const std::int64_t> minima, sums;
  };
  /// Returns the result once all ranks have contributed; afterwards the next may start.
  virtual std::optional<Reduced> finish_reduction() = 0;

  /// Adds a count to the sum over all ranks that is under way, or returns this sum if every rank has added its own.
  /// Ranks call it now and then, whatever else they do. A transport that makes no sums returns nothing.
  virtual std::optional<std::int64_t> beat([[maybe_unused]] std::int64_t count) { return std::nullopt; }
  /// Completes the sum that is under way. Collective, after the last reduction.
  virtual void end_beats() {}
};

/// Makes the transport of a communicator. With one rank, a message to itself is an error, and a reduction returns what
/// was given. The transport ends before the communicator. Collective.
std::unique_ptr<Transport> make_transport(Communicator& world);

}  // namespace orrery::parallel
