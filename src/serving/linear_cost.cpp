#include <algorithm>
#include <cmath>

#include "draws.hpp"
#include "orrery/serving/step_options.hpp"

namespace orrery::serving {
namespace {

class Linear final : public StepModel {
 public:
  Linear(const LinearCost& cost, std::uint64_t seed, std::uint32_t instance)
      : cost_(cost), seed_(seed), instance_(instance) {}

  Time duration(const StepShape& shape, std::uint64_t number) override {
    const auto times = [](Time price, std::uint64_t count) { return price.ps() * static_cast<std::int64_t>(count); };
    std::int64_t ps = cost_.base.ps() + times(cost_.token, shape.tokens()) + times(cost_.sequence, shape.sequences()) +
                      times(cost_.context, shape.context_sum + shape.chunk_context);
    if (cost_.is_exponential)
      ps = std::llround(-std::log1p(-unit_draw(seed_ + instance_, number, draw_of_step)) * static_cast<double>(ps));
    return Time::from_ps(std::max<std::int64_t>(ps, 1));
  }

 private:
  LinearCost cost_;
  std::uint64_t seed_;
  std::uint32_t instance_;
};

}  // namespace

extern const StepModelType linear_cost;
constinit const StepModelType linear_cost{
    .name = "linear",
    .help = "base + token * tokens + sequence * requests + context * tokens of context",
    .make = [](const StepContext& context) -> std::shared_ptr<StepModel> {
      return std::make_shared<Linear>(context.options.linear, context.seed, context.number);
    }};

}  // namespace orrery::serving
