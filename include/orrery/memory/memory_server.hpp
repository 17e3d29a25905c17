#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_place.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/memory/record.hpp"

namespace orrery::memory {

/// What the switches on the path to a memory do for the NPUs that access it together.
enum class PathCollective : std::uint8_t {
  none,
  all_gather,      ///< a load: they multicast what is read once
  reduce_scatter,  ///< a store: they add up what the NPUs send; the sum is written once
  all_reduce,      ///< the same, and the sum comes back to every NPU
};

/// A server that serves one access after the other in the order in which they come.
class MemoryServer {
 public:
  /// Serves a request. Requests must come in the order of their times. Returns when the access is done.
  Time serve(Time request, Time access_time) {
    free_at_ = (request > free_at_ ? request : free_at_) + access_time;
    ++num_served_;
    return free_at_;
  }
  std::uint64_t num_served() const { return num_served_; }

 private:
  Time free_at_;
  std::uint64_t num_served_ = 0;
};

/// Who waits for an access.
struct Requester {
  NpuId npu;
  NodeId node;
  bool awaits_begin = false;  ///< it goes on when it knows whether the access ends at once
};

/// The place of an access among simultaneous events, and that of its end. Only an order that knows places sets them.
struct AccessPlace {
  EventPlace access;  ///< place of the end of the access if the access is served at once
  EventPlace end;     ///< place of the event in which the access then ends, with Requester::awaits_begin

  void serialize(Archive& archive) { archive(access, end); }
};

/// An access to a server that NPUs share: of one NPU, or of the members of a group that access together.
struct ServerAccess {
  Time since;
  Bytes size;  ///< bytes that each requester gets or gives, positive
  PathCollective collective = PathCollective::none;
  std::span<const Requester> requesters;
  AccessPlace place = {};
};

/// A server that NPUs share, without the events that carry requests and answers.
class SharedServer {
 public:
  /// Takes the end of a requester's access that began at `since`; max(): it does not fit the range of time. `place`:
  /// place of the end among simultaneous events.
  using Answer = std::function<void(const Requester&, Time since, Time done, const EventPlace& place)>;

  virtual ~SharedServer() = default;

  /// Takes an access. Accesses must come in the order of their times. A server that knows when it is done gives the
  /// answer and returns nothing. Another one keeps the access and returns the time at which it wants `close` to be
  /// called, unless an access before asked for the same call.
  virtual std::optional<Time> access(const ServerAccess& access, const Answer& answer) = 0;
  /// Gives the answers to accesses that began before `now`, the time that `access` returned. Returns the time at which
  /// it wants to be called again, if it has kept some.
  virtual std::optional<Time> close(Time now, const Answer& answer);

  /// Returns the data that have passed each stage of the server; empty for one without stages.
  virtual std::vector<MemoryStageRecord> stages() const { return {}; }
  /// Writes the state, or reads it.
  virtual void serialize(Archive& archive) = 0;
};

}  // namespace orrery::memory
