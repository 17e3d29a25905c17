#include "orrery/serving/step_model.hpp"

#include <algorithm>

namespace orrery::serving {

const StepShape& StepModel::idle_shape() {
  static const StepShape idle = [] {
    StepShape shape;
    shape.add(1, 0);
    return shape;
  }();
  return idle;
}

Time StepModel::group_duration(std::span<const StepShape* const> shapes, std::uint64_t number) {
  Time longest = Time::from_ps(1);
  for (const StepShape* const shape : shapes)
    longest = std::max(longest, duration(shape->tokens() == 0 ? idle_shape() : *shape, number));
  return longest;
}

void StepModel::stage_durations(std::span<const StepShape* const> shapes, std::uint64_t number,
                                std::span<Time> stages) {
  const Time whole = shapes.size() == 1 ? duration(*shapes[0], number) : group_duration(shapes, number);
  const auto count = static_cast<std::int64_t>(stages.size());
  Time before;
  for (std::int64_t s = 0; s < count; ++s) {
    const Time until = Time::from_ps(static_cast<std::int64_t>(static_cast<__int128>(whole.ps()) * (s + 1) / count));
    stages[static_cast<std::size_t>(s)] = std::max(until - before, Time::from_ps(1));
    before = until;
  }
}

std::vector<StagePlan> StepModel::plan(std::span<const StepShape* const> shapes, std::uint64_t number,
                                       std::uint32_t stages) {
  std::vector<Time> times(stages);
  stage_durations(shapes, number, times);
  std::vector<StagePlan> plans;
  for (const Time time : times) plans.push_back({{.phases = {{.compute = time}}}});
  return plans;
}

}  // namespace orrery::serving
