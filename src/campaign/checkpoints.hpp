#pragma once

#include <cstdint>
#include <vector>

#include "orrery/campaign/setup.hpp"

namespace orrery::campaign {

/// The checkpoints of a replication, and when the next ones are due (R6).
class Checkpoints {
 public:
  explicit Checkpoints(const Setup& setup);

  bool any() const { return !tiers_.empty(); }
  Nanoseconds first_stall() const { return tiers_.front().stall; }
  /// Returns the next progress at which a checkpoint is due.
  Nanoseconds next_due(Nanoseconds progress) const;
  /// Returns whether a checkpoint is due at this progress that is not there yet.
  bool is_due(Nanoseconds progress) const;
  /// Takes all checkpoints that are due. Returns for how long the job stops.
  Nanoseconds take_due(Nanoseconds progress, Nanoseconds now);
  /// Takes a checkpoint of the first tier, which is durable at once. It replaces no older one: the next that is due
  /// does.
  void take_planned(Nanoseconds progress, Nanoseconds now);

  struct Restored {
    Nanoseconds progress = 0, read = 0;
  };
  /// Goes back to the newest checkpoint of all tiers that is durable and outlives a failure of a host or a group.
  /// `before`: the progress that it may have at the most. Newer ones are lost.
  Restored roll_back(Nanoseconds now, bool of_group, Nanoseconds before);

  /// Where a job is after it has worked and taken checkpoints for some time.
  struct Reached {
    Nanoseconds progress = 0;
    Nanoseconds stalled = 0;     ///< time of the checkpoints
    Nanoseconds stall_left = 0;  ///< time that the last one still takes
  };
  /// Returns how long the job takes from `progress` to `work` without a failure; more than `most` if that is not
  /// enough. A checkpoint at the end is not counted. O(tiers).
  Nanoseconds time_to(Nanoseconds work, Nanoseconds progress, Nanoseconds most) const;
  /// Lets the job work from `progress` for `elapsed` nanoseconds, at most until `work`. Checkpoints are counted by
  /// division. O(tiers * (keep + log elapsed)).
  Reached run(Nanoseconds work, Nanoseconds progress, Nanoseconds now, Nanoseconds elapsed);

 private:
  struct Saved {
    Nanoseconds progress = 0, durable = 0;
  };

  /// Returns the time of the stalls at the first `number` checkpoints.
  Nanoseconds stalls(Nanoseconds number) const;
  Nanoseconds stall_of(Nanoseconds number) const { return stalls(number) - stalls(number - 1); }
  void keep(std::size_t tier, Saved saved);

  const std::vector<Tier>& tiers_;
  Nanoseconds interval_ = longest;         // of the first tier
  std::vector<Nanoseconds> multiples_;     // [tiers] interval over that of the first one
  std::vector<std::vector<Saved>> saved_;  // [tiers] oldest first; the beginning counts as one
};

}  // namespace orrery::campaign
