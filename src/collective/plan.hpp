#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "evaluation.hpp"
#include "group_layout.hpp"
#include "member_order.hpp"
#include "routes.hpp"
#include "schedule.hpp"

namespace orrery::collective {

/// Returns how many chunks of the phase's queue are in service at a time.
std::uint64_t in_service(const network::DelayModel& delays, const Options& options, const Phase& phase);

/// Working memory of Plan::run, kept between calls.
struct Workspace {
  std::vector<Ps> arrays;              ///< [Schedule::num_arrays][members]
  std::vector<Ps> times;               ///< [groups][positions]
  std::vector<Ps> starts, before;      ///< [groups][positions]
  std::vector<std::vector<Ps>> slots;  ///< [queues][slots of a queue][members] when each becomes free
  Scratch scratch;
};

/// Everything that completions follow from, for one layout, kind and size. The layout must outlive it.
class Plan {
 public:
  Plan(const network::DelayModel& delays, const Options& options, const GroupLayout& layout, Kind kind, Bytes size,
       Turn turn = {});

  /// Returns whether members that arrive together complete together, `end` later.
  bool completes_together() const { return completes_together_; }
  /// Returns the time from an arrival that all share to the last completion.
  Ps end() const { return schedule_.end; }
  /// Returns a time that passes at least from the first arrival to the first completion, if a later arrival can make a
  /// completion earlier; none if it cannot.
  std::optional<Ps> shortest() const { return shortest_; }
  /// Returns whether members that arrive at different times may serve chunks in different orders, so that a later
  /// arrival can make a completion earlier.
  bool orders_by_member() const { return own_order_.has_value(); }
  const Schedule& schedule() const { return schedule_; }
  /// Returns the bytes that the plan holds, within a factor of two.
  std::size_t memory() const;
  /// Computes completions from arrivals, both [members], no arrival before 0: it evaluates the phases (docs/model.md,
  /// 5) in the order of the schedule. O(members * chunks * phases) for rings and the shapes in which all pairs are
  /// alike.
  void run(std::span<const Ps> arrivals, std::span<Ps> completions, Workspace& workspace) const;

 private:
  /// A phase of the chunks that take a route.
  struct PlannedPhase {
    const Axis* axis = nullptr;
    ForChunks<std::unique_ptr<GroupEvaluator>> evaluators;
    Ps latency[2] = {0, 0};  ///< times of even and odd chunks for which a chunk does not block the next one
    Ps busy[2] = {0, 0};     ///< the rest of the duration
  };

  bool is_chain() const;
  std::optional<Ps> find_shortest() const;
  void give_slots(const ChunkWork& work, ChunkOrder order);
  void run_by_slots(std::span<const Ps> arrivals, std::span<Ps> completions, Workspace& workspace) const;
  void run_chain(std::span<const Ps> arrivals, std::span<Ps> completions, Workspace& workspace) const;

  std::vector<PlannedPhase> phases_;  ///< one for each stage of the schedule
  Schedule schedule_;
  bool completes_together_ = true;
  std::optional<Ps> shortest_;
  bool is_chain_ = false;  ///< chunks pass the only phase one after the other, each from the finishes of the last one
  /// Members take free slots each for itself (Rules::turns_go_on): [queues] slots. Else they follow the schedule.
  std::vector<std::uint64_t> own_slots_;
  std::optional<MemberOrder> own_order_;  ///< with own slots, where members may serve chunks in orders of their own
};

}  // namespace orrery::collective
