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
///
/// With buffers a product takes its stalls too, in place of what its bytes take (docs/compute.md, *Buffers*): what the
/// next fold needs is fetched during a fold, and the array waits for what is not there then. Results leave whenever
/// their buffer has some, and the array waits while it is full. Each operand and the results have an interface of their
/// own, and the slowest counts.
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
    const double computing = static_cast<double>(copies) * cycles * array_.cycle_ns * 1e-9;
    return rounded(array_.buffers.any() ? computing : std::max(bytes, computing));
  }

 private:
  double moving(double bytes) const { return bytes / bandwidth_; }
  Time rounded(double seconds) const { return duration_from_ns(seconds * 1e9, rounding_); }

  /// How a product lies on the array: what of it is on rows and on columns, and what passes.
  struct Layout {
    double rows, columns, passes;    ///< sizes of the whole product
    double row_folds, column_folds;  ///< numbers of folds
    double cycles;                   ///< cycles of a fold
    double folds() const { return row_folds * column_folds; }
  };
  Layout layout(std::uint64_t on_rows, std::uint64_t on_columns, std::uint64_t passes) const {
    const double rows = array_.rows, columns = array_.columns;
    const auto on = static_cast<double>(on_rows), across = static_cast<double>(on_columns);
    const auto through = static_cast<double>(passes);
    return {on, across, through, std::ceil(on / rows), std::ceil(across / columns), 2 * rows + columns + through - 2};
  }

  /// Returns the cycles of a product.
  double product(std::uint64_t m, std::uint64_t k, std::uint64_t n) const {
    const ArrayBuffers& buffers = array_.buffers;
    switch (array_.dataflow) {
      case Dataflow::output_stationary: {
        const Layout at = layout(m, n, k);
        return cycles(at, std::max({stall_of_rows(at, buffers.input), stall_of_columns(at, buffers.filter),
                                    stall_of_results(at, at.rows * at.columns)}));
      }
      case Dataflow::weight_stationary: {
        const Layout at = layout(k, n, m);
        return cycles(at, std::max({stall_of_rows(at, buffers.input), stall_of_array(at),
                                    stall_of_results(at, at.row_folds * at.columns * at.passes)}));
      }
      case Dataflow::input_stationary:
        break;
    }
    const Layout at = layout(k, m, n);
    return cycles(at, std::max({stall_of_rows(at, buffers.filter), stall_of_array(at),
                                stall_of_results(at, at.row_folds * at.columns * at.passes)}));
  }
  static double cycles(const Layout& at, double stalls) { return at.folds() * at.cycles - 1 + stalls; }

  // Each of these returns the cycles in which the array waits for one interface. Folds go along the rows first. What
  // the first fold needs is there when the product begins.

  /// Waits for the operand that enters by rows: a slice for each row fold, which is fetched again for each column fold
  /// unless half of the buffer holds all of it.
  double stall_of_rows(const Layout& at, Bytes buffer) const {
    const bool stays = values_in(buffer) / 2 >= at.rows * at.passes;
    const double fetches = (stays ? at.row_folds : at.folds()) - 1;
    return fetches * left_of(at.rows * at.passes / at.row_folds, at);
  }
  /// Waits for the operand that enters by columns: a slice for each column fold, which is fetched again for each fold
  /// unless half of the buffer holds it.
  double stall_of_columns(const Layout& at, Bytes buffer) const {
    const double slice = at.columns * at.passes / at.column_folds;
    const bool stays = values_in(buffer) / 2 >= slice;
    return ((stays ? at.column_folds : at.folds()) - 1) * left_of(slice, at);
  }
  /// Waits for the operand that stays in the array during a fold.
  double stall_of_array(const Layout& at) const {
    return (at.folds() - 1) * left_of(at.rows * at.columns / at.folds(), at);
  }
  /// Waits for the buffer of results while it is full; what is in it in the end leaves later.
  double stall_of_results(const Layout& at, double values) const {
    if (!array_.buffers.any()) return 0;
    const double leaving = values - values_in(array_.buffers.output);
    return std::max(leaving / values_per_cycle() - at.folds() * at.cycles, 0.0);
  }
  /// Returns what is left of the transfer of so many values after a fold.
  double left_of(double values, const Layout& at) const {
    return array_.buffers.any() ? std::max(values / values_per_cycle() - at.cycles, 0.0) : 0;
  }
  double values_in(Bytes buffer) const {
    return static_cast<double>(buffer.count()) / static_cast<double>(array_.buffers.value.count());
  }
  double values_per_cycle() const {
    return array_.buffers.bandwidth.bytes_per_ns() * array_.cycle_ns /
           static_cast<double>(array_.buffers.value.count());
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
  const ArrayBuffers& buffers = options.systolic.buffers;
  if (!buffers.any()) return;
  require(buffers.input > Bytes(0), "system.compute.array.input-buffer", "a size, as the other buffers have");
  require(buffers.filter > Bytes(0), "system.compute.array.filter-buffer", "a size, as the other buffers have");
  require(buffers.output > Bytes(0), "system.compute.array.output-buffer", "a size, as the other buffers have");
  require(buffers.bandwidth.bytes_per_ns() > 0, "system.compute.array.bandwidth",
          "the bandwidth between each buffer and memory, such as 100 GB/s");
  require(buffers.value > Bytes(0), "system.compute.array.value", "the size of a value, such as 2 B");
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
