#include <algorithm>
#include <cmath>

#include "orrery/base/error.hpp"
#include "orrery/compute/options.hpp"

namespace orrery::compute {
namespace {

/// A systolic array, by the equations of SCALE-Sim (Samajdar et al., arXiv 1811.02883, and SCALE-Sim 2). Of a product
/// of [m, k] by [k, n], two of the three sizes lie on the rows and columns of the array, and the third passes it:
///
///   dataflow            rows  columns  passes
///   output stationary   m     n        k
///   weight stationary   k     n        m
///   input stationary    k     m        n
///
/// What exceeds the array is done in folds, of (2 rows + columns + passes - 2) cycles each; the last cycle of all is
/// not counted. A product takes at least what its bytes take. Attention is two products, of which causal attention
/// computes half. Backward, a product is two products, and attention takes 2.5 times as long.
class Systolic final : public ComputeModel {
 public:
  explicit Systolic(const Options& options)
      : array_(options.systolic), bandwidth_(options.local_memory.bytes_per_ns() * 1e9), rounding_(options.rounding) {}

  /// Nodes of generated workloads carry their estimates. Others take what their bytes take.
  Time duration(const ComputeNode& node) const override {
    if (node.recorded > shortest_recorded) return node.recorded;
    return rounded(moving(static_cast<double>(node.tensor_size.count())));
  }

  Time estimate(const Operation& operation) const override {
    const double bytes = moving(static_cast<double>(operation.bytes));
    if (operation.kind == Operation::Kind::elementwise) return rounded(bytes);
    const auto& [m, k, n, copies] = operation.shape;
    double cycles = 0;
    if (operation.kind == Operation::Kind::attention)
      cycles =
          (product(m, k, n) + product(m, n, k)) * (operation.is_causal ? 0.5 : 1) * (operation.is_backward ? 2.5 : 1);
    else
      cycles = operation.is_backward ? product(m, n, k) + product(k, m, n) : product(m, k, n);
    return rounded(std::max(bytes, static_cast<double>(copies) * cycles * array_.cycle_ns * 1e-9));
  }

 private:
  double moving(double bytes) const { return bytes / bandwidth_; }
  Time rounded(double seconds) const { return duration_from_ns(seconds * 1e9, rounding_); }

  /// Returns the cycles of a product.
  double product(std::uint64_t m, std::uint64_t k, std::uint64_t n) const {
    const auto folds = [this](std::uint64_t on_rows, std::uint64_t on_columns, std::uint64_t passes) {
      const double rows = array_.rows, columns = array_.columns;
      const double count =
          std::ceil(static_cast<double>(on_rows) / rows) * std::ceil(static_cast<double>(on_columns) / columns);
      return count * (2 * rows + columns + static_cast<double>(passes) - 2) - 1;
    };
    switch (array_.dataflow) {
      case Dataflow::output_stationary:
        return folds(m, n, k);
      case Dataflow::weight_stationary:
        return folds(k, n, m);
      case Dataflow::input_stationary:
        break;
    }
    return folds(k, m, n);
  }

  SystolicOptions array_;
  double bandwidth_;  ///< bytes per second
  Rounding rounding_;
};

void require_array(const Options& options) {
  const auto require = [](bool holds, const char* key, const char* expected) {
    if (!holds) throw Error(ErrorCode::bad_input, {.key = key}, "the compute model systolic needs it", expected);
  };
  require(options.systolic.rows > 0 && options.systolic.columns > 0, "system.compute.array.rows",
          "rows and columns of the array");
  require(options.systolic.cycle_ns > 0, "system.compute.array.cycle", "the time of a cycle, such as 1.06 ns");
  require(options.local_memory.bytes_per_ns() > 0, "system.compute.local-memory.bandwidth", "a positive bandwidth");
}

}  // namespace

extern const ModelType systolic_model;
constinit const ModelType systolic_model{
    .name = "systolic",
    .help = "matrix products on a systolic array, by the equations of SCALE-Sim",
    .estimates_operations = true,
    .validate = require_array,
    .make = [](const Options& options) -> std::unique_ptr<const ComputeModel> {
      return std::make_unique<Systolic>(options);
    },
};

}  // namespace orrery::compute
