#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "group_context.hpp"
#include "ps.hpp"

namespace orrery::collective {

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

/// Lets nobody finish before all have begun and two endpoint delays have passed: for a broadcast or reduce.
std::unique_ptr<GroupEvaluator> after_all_have_begun(std::unique_ptr<GroupEvaluator> evaluator, std::uint32_t size,
                                                     Ps endpoint_delay);

/// Returns the finishes of positions that start together at 0. `num_positions`: of one group, or of all groups of the
/// axis; an evaluator of evaluate_groups needs all, because its groups may differ.
std::vector<Ps> finishes_from_zero(const GroupEvaluator& evaluator, std::size_t num_positions);
/// Returns the least time from the first start to the first finish, whoever comes late. `num_positions`: as above.
Ps shortest_of(const GroupEvaluator& evaluator, std::size_t num_positions);

}  // namespace orrery::collective
