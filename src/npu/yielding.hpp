#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::npu {

/// How readily collectives yield: each tier yields its bandwidth to those below it. Tier 0 has no negative priority, 1
/// has -1, and 2 has lower ones.
constexpr std::size_t num_tiers = 3;

inline std::size_t tier_of(const trace::Graph& graph, NodeId id) {
  const std::int32_t priority = graph.priority_of(id);
  return priority >= 0 ? 0 : priority == -1 ? 1 : 2;
}

/// What the dimensions of a set do for the collectives of one tier.
///
/// Each collective has work: the time that it takes alone. The dimensions work for the tier when they are free of lower
/// tiers, at one collective after the other, from when its last member has come. A collective ends when its work is
/// done by what is known then. What uses the dimensions becomes known when it ends; if it then turns out that the tier
/// worked less than was thought, the next collective ends later. So bandwidth is used once.
class Lane {
 public:
  void begin() { ++num_under_way_; }
  /// Takes note that a collective of a lower tier has used the dimensions.
  void count(Time from, Time to);
  /// Returns how much later than `now` a collective under way ends. `since` is when its last member came.
  Time owed(NodeId id, Time since, Time now);
  /// Ends it. No use becomes known later that began before `horizon`.
  void end(NodeId id, Time horizon);
  void serialize(Archive& archive) { archive(under_way_, ended_, uses_, latest_, num_under_way_); }

 private:
  struct Work {
    NodeId id;
    Time since, length;
  };
  struct Use {
    Time from, to;
  };
  void merge_latest();
  Time end_of(const Work& work, Time before) const;

  std::vector<Work> under_way_;  ///< one, unless streams have names; those that have reached their ends once
  std::vector<Work> ended_;      ///< whose ends may still move, in order
  std::vector<Use> uses_;        ///< uses in order of time, disjoint
  std::vector<Use> latest_;      ///< uses that ended at one time: others that end then may be handled later
  std::size_t num_under_way_ = 0;
};

/// The collectives of one NPU that yield under Options::dimension_streams. The NPU decides by itself, from ends that it
/// has handled, so results do not depend on ranks. A delay only grows, so all bounds stay bounds.
class Yielding {
 public:
  explicit Yielding(std::size_t num_sets) : sets_(num_sets) {}

  void begin(std::size_t set, std::size_t tier, NodeId id, Time now);
  /// Returns how much later than `now` a collective ends, whose last member came at `since`: a later end asks again.
  /// One to which nothing is owed ends.
  Time take_owed(std::size_t set, std::size_t tier, NodeId id, Time since, Time now);
  void serialize(Archive& archive) { archive(sets_); }

 private:
  struct UnderWay {
    NodeId id;
    std::size_t tier;
    Time begun;
  };
  struct Set {
    std::array<std::unique_ptr<Lane>, num_tiers - 1> lanes;  ///< lanes of tiers 1 and 2; null until it has a collective
    std::vector<UnderWay> under_way;

    void serialize(Archive& archive) {
      for (auto& lane : lanes) archive(lane);
      archive(under_way);
    }
  };
  std::vector<Set> sets_;
};

}  // namespace orrery::npu
