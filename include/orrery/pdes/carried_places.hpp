#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_place.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::pdes {

/// The places, among simultaneous events, of events that other LPs have sent to the LPs of a rank, until they are
/// taken.
class CarriedPlaces {
 public:
  explicit CarriedPlaces(Rank here) : here_(here) {}

  /// Sends an event with its place.
  void send(Scheduler& kernel, Rank to, const Event& event, EventPlace place) {
    if (to == here_) {
      coming_[event.order] = std::move(place);
      return kernel.send(to, event);
    }
    Archive archive;
    archive(place);
    kernel.send(to, event, archive.written());
  }
  /// Keeps the place of an event that has come from another rank: see Model::unpack.
  void unpack(const Event& event, std::span<const std::byte> bytes) {
    Archive archive(bytes);
    archive(coming_[event.order]);
  }
  /// Returns the place of an event, and forgets it; unknown if the event came without one.
  EventPlace take(const Event& event) {
    auto found = coming_.extract(event.order);
    return found.empty() ? EventPlace() : std::move(found.mapped());
  }

 private:
  Rank here_;
  std::map<std::uint64_t, EventPlace> coming_;  // by Event::order
};

}  // namespace orrery::pdes
