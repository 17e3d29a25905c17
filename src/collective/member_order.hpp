#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "evaluation.hpp"
#include "schedule.hpp"

namespace orrery::collective {

/// One stage of a schedule as its members see it.
struct MemberStage {
  const GroupEvaluator* evaluators[2] = {};  ///< evaluators of even and odd chunks; all groups have equal links
  std::span<const std::uint32_t> members;    ///< [groups][positions]
  std::uint32_t group_size = 0;              ///< positions of a group
};

/// The order of chunks where each member serves its own queues (Rules::turns_go_on). Each takes the chunk that came
/// first to it, so that members that arrive at different times may serve chunks in different orders.
class MemberOrder {
 public:
  /// `slots`: [queues] chunks in service at a time. What the stages point to must outlive it.
  MemberOrder(const Schedule& schedule, std::vector<MemberStage> stages, std::span<const std::uint64_t> slots);

  /// Computes completions from arrivals, both [members]. `schedule`: as above. Returns whether all members complete:
  /// members that serve chunks in different orders may wait for each other for ever. O(members * services * log).
  bool run(const Schedule& schedule, std::span<const Ps> arrivals, std::span<Ps> completions) const;
  /// Returns the bytes that it holds, within a factor of two.
  std::size_t memory() const;

 private:
  class Simulation;

  std::vector<MemberStage> stages_;
  std::vector<std::uint64_t> slots_;   ///< [queues]
  std::vector<std::uint32_t> first_;   ///< the first service of each chunk, in the order of chunks
  std::vector<std::uint32_t> next_;    ///< [services] the chunk's next service; none after the last
  std::vector<std::uint32_t> places_;  ///< [stages][members] place of a member in MemberStage::members
};

}  // namespace orrery::collective
