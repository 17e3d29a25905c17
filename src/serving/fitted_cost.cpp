#include <algorithm>
#include <cmath>

#include "orrery/base/error.hpp"
#include "orrery/serving/step_options.hpp"
#include "us_to_time.hpp"

namespace orrery::serving {
namespace {

class Fitted final : public StepModel {
 public:
  explicit Fitted(const FittedCost& cost) : cost_(cost) {}

  Time duration(const StepShape& shape, std::uint64_t) override {
    double ms = 0;
    // A single token that begins a prompt counts as a request that generates.
    if (!shape.chunks.empty()) {
      double squares = 0;
      for (const StepShape::Chunk& chunk : shape.chunks) {
        const double end = static_cast<double>(chunk.context) + chunk.tokens, begin = chunk.context;
        squares += end * end - begin * begin;
      }
      ms += value(cost_.prefill, static_cast<double>(shape.chunk_tokens), squares);
    }
    if (shape.decodes > 0) {
      const bool is_large = cost_.threshold > 0 && shape.decodes >= cost_.threshold;
      ms += value(is_large ? cost_.large_decode : cost_.decode, static_cast<double>(shape.context_sum), shape.decodes);
    }
    return us_to_time(ms * 1000);
  }

 private:
  static double value(const std::vector<double>& of, double tokens, double last) {
    return of[0] + of[1] * tokens + of[2] * last;
  }

  FittedCost cost_;
};

}  // namespace

extern const StepModelType fitted_cost;
constinit const StepModelType fitted_cost{
    .name = "fitted",
    .help = "coefficients of a fit of prefills and of steps that generate, as DistServe publishes them",
    .make = [](const StepContext& context) -> std::shared_ptr<StepModel> {
      const FittedCost& cost = context.options.fitted;
      const auto require = [](const std::vector<double>& of, const char* key) {
        if (of.size() != 3)
          throw Error(ErrorCode::bad_input, {.key = key}, "there are not three coefficients",
                      "three numbers of ms: [fixed, per token, per request or squared token]");
      };
      require(cost.prefill, "serving.step.fitted.prefill");
      require(cost.decode, "serving.step.fitted.decode");
      if (cost.threshold > 0) require(cost.large_decode, "serving.step.fitted.large-decode");
      return std::make_shared<Fitted>(cost);
    }};

}  // namespace orrery::serving
