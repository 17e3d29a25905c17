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

}  // namespace orrery::serving
