#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "group_context.hpp"
#include "ps.hpp"

namespace orrery::collective {

class PhaseAlgorithm;
class SteppedAlgorithm;
struct Round;

/// Arrays that evaluators use while they run, kept between calls.
struct Scratch {
  std::vector<Ps> first, second;
};

/// One phase in dimension groups as a function from the starts of the positions to their finishes. A shift of all
/// starts shifts all finishes. A later start makes no finish earlier, unless `shortest` says otherwise.
class GroupEvaluator {
 public:
  virtual ~GroupEvaluator() = default;

  /// Returns whether positions that start together finish together.
  virtual bool finishes_together() const = 0;
  /// Returns the time from a start that all share to the last finish.
  virtual Ps duration() const = 0;
  /// Returns the least time from the first start to the first finish if a later start can make a finish earlier; none
  /// if it cannot, so that this is the time to the first finish of positions that start together.
  virtual std::optional<Ps> shortest() const { return {}; }
  /// Returns the bytes that the evaluator holds, within a factor of two.
  virtual std::size_t memory() const = 0;
  /// Replaces starts by finishes. times: [groups][positions].
  virtual void run(std::span<Ps> times, Scratch& scratch) const = 0;
};

/// Makes the evaluator for all groups of the axis, whatever `context.group` is: groups with equal links share one.
std::unique_ptr<GroupEvaluator> evaluate_groups(const PhaseAlgorithm& algorithm, const GroupContext& context);

/// Evaluates rounds one by one. Cost of a run of a group of n: for each round O(n) where positions exchange in pairs or
/// where each sends to all others over links that are all alike, else O(n * messages of a position).
std::unique_ptr<GroupEvaluator> evaluate_rounds(std::span<const Round> rounds, const GroupContext& context);

/// Evaluates the steps of each position in an order in which no step comes before those that it waits for. Cost of a
/// run: O(messages). Throws Error (internal) if steps wait for each other in a circle.
std::unique_ptr<GroupEvaluator> evaluate_steps(const SteppedAlgorithm& algorithm, const GroupContext& context);
/// Returns the least number of endpoint delays on any path through the steps, from any start to any finish.
std::uint64_t fewest_delays_of_steps(const SteppedAlgorithm& algorithm);

/// Lets nobody finish before all have begun and two endpoint delays have passed: for a broadcast or reduce.
std::unique_ptr<GroupEvaluator> after_all_have_begun(std::unique_ptr<GroupEvaluator> evaluator, std::uint32_t size,
                                                     Ps endpoint_delay);

/// Returns the finishes of positions that start together at 0. `num_positions`: of one group, or of all groups of the
/// axis; an evaluator of evaluate_groups needs all, because its groups may differ.
std::vector<Ps> finishes_from_zero(const GroupEvaluator& evaluator, std::size_t num_positions);
/// Returns the least time from the first start to the first finish, whoever comes late. `num_positions`: as above.
Ps shortest_of(const GroupEvaluator& evaluator, std::size_t num_positions);

}  // namespace orrery::collective
