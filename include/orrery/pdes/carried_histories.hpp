#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/event_history.hpp"
#include "orrery/pdes/event.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::pdes {

/// The histories of events that come to the LPs of a rank from other LPs, by Event::order, until they are taken.
class CarriedHistories {
 public:
  explicit CarriedHistories(Rank here) : here_(here) {}

  /// Sends an event with its history.
  void send(Scheduler& kernel, Rank to, const Event& event, EventHistory history) {
    if (to == here_) {
      coming_[event.order] = std::move(history);
      return kernel.send(to, event);
    }
    Archive archive;
    archive(history);
    kernel.send(to, event, archive.written());
  }
  /// Keeps the history of an event that has come from another rank: see Model::unpack.
  void unpack(const Event& event, std::span<const std::byte> bytes) {
    Archive archive(bytes);
    archive(coming_[event.order]);
  }
  /// Returns the history of an event, and forgets it; of no event if it came without.
  EventHistory take(const Event& event) {
    auto found = coming_.extract(event.order);
    return found.empty() ? EventHistory() : std::move(found.mapped());
  }

 private:
  Rank here_;
  std::map<std::uint64_t, EventHistory> coming_;
};

}  // namespace orrery::pdes
