#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/time.hpp"

namespace orrery::network {

/// What a link has done.
struct LinkStatistics {
  std::uint64_t messages = 0;
  Bytes bytes;
  Time busy;                     ///< while it served messages
  Time queueing;                 ///< time that messages waited for it, summed over messages
  std::uint32_t peak_queue = 0;  ///< most messages that waited at a time, without the one in service
};

/// A directed link, which serves messages one after the other in the order in which they come.
class LinkServer {
 public:
  /// Serves a message that comes at `now`, not before the last one, and holds the link for `holds`. Returns when its
  /// service begins; max() if it ends out of range. Amortised O(1).
  Time serve(Time now, Time holds, Bytes size);

  /// Serves a message that comes at `now` at once, which delays by `holds` what waits. Returns false if that leads out
  /// of range.
  bool serve_at_once(Time now, Time holds, Bytes size);

  /// Takes note of a message that comes at `now` and waits; `until` is not before that of the last one.
  void wait(Time now, Time until);

  /// Returns when the service of a message that comes at `now` begins.
  Time begins(Time now) const { return std::max(now, free_); }

  const LinkStatistics& statistics() const { return statistics_; }
  void serialize(Archive& archive) { archive(free_, statistics_, starts_, first_); }

 private:
  Time free_;
  LinkStatistics statistics_;
  std::vector<Time> starts_;  ///< starts of services to come, as of the last message, from first_ on
  std::uint32_t first_ = 0;
};

}  // namespace orrery::network
