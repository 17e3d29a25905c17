#include "orrery/serving/step_options.hpp"

namespace orrery::serving {

// Each is in the source of its name.
extern const StepModelType linear_cost, fitted_cost, profile, operators, batch_table, system_operators;

std::span<const StepModelType* const> StepModelType::registry() {
  static const StepModelType* const all[] = {&system_operators, &linear_cost, &fitted_cost,
                                             &profile,          &operators,   &batch_table};
  return all;
}

}  // namespace orrery::serving
