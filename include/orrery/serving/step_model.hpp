#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/serving/step_plan.hpp"
#include "orrery/serving/step_shape.hpp"

namespace orrery::serving {

/// The largest size that was asked for beyond the end of a table, with the words before and after it.
struct BeyondTable {
  std::string before;
  double asked = 0;
  std::string after;
};

/// Says how long a step takes. The answers depend on the shapes alone; memos make repeated questions cheap.
class StepModel {
 public:
  virtual ~StepModel() = default;

  /// Returns the duration of a step of one scheduler, 1 ps or more. `number` counts the steps of the instance.
  virtual Time duration(const StepShape& shape, std::uint64_t number) = 0;
  /// Returns the duration of a step of data-parallel ranks that begin it together. A rank without work computes one
  /// token without context. By default that of the slowest rank.
  virtual Time group_duration(std::span<const StepShape* const> shapes, std::uint64_t number);
  /// Returns in `stages` the durations of a step on each stage of a pipeline, 1 ps or more. `shapes`: one for each
  /// data-parallel rank. By default equal parts of the duration on one stage.
  virtual void stage_durations(std::span<const StepShape* const> shapes, std::uint64_t number, std::span<Time> stages);
  /// Returns what a step does on each of `stages` stages, where collectives are messages (StepOptions::over_network).
  /// The arguments are those of stage_durations. By default a step only computes.
  virtual std::vector<StagePlan> plan(std::span<const StepShape* const> shapes, std::uint64_t number,
                                      std::uint32_t stages);
  /// Returns which sizes lay beyond the tables, each once.
  virtual std::vector<BeyondTable> beyond_tables() const { return {}; }

 protected:
  /// Returns the step of a rank without work: one token without context.
  static const StepShape& idle_shape();
};

/// A step takes base + token * tokens + sequence * requests + context * tokens of context.
struct LinearCost {
  Time base, token, sequence, context;
  bool is_exponential = false;  ///< durations are drawn; the sum is their mean
};

}  // namespace orrery::serving
