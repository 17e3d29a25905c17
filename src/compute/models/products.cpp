#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "orrery/base/error.hpp"
#include "orrery/compute/options.hpp"

namespace orrery::compute {
namespace {

/// Rows and columns of the result that a unit computes at a time.
struct Tile {
  std::uint64_t rows, columns;
  int halvings;  ///< halvings of the area of the largest tile
};
constexpr std::array tiles = {Tile{256, 128, 0}, Tile{128, 256, 0}, Tile{128, 128, 1},
                              Tile{128, 64, 2},  Tile{64, 128, 2},  Tile{64, 64, 3}};

/// Rows of matrices that are no multiple of 16 bytes are loaded value by value or by smaller vectors. NVIDIA's guide to
/// the performance of matrix products asks for multiples of 16 bytes, and of 128 on A100, without numbers. The share at
/// multiples of 8 is fitted to 20 steps of BLOOM's models with 1,800 values in a row (docs/validation.md), all others
/// are assumed.
struct Alignment {
  std::uint64_t multiple;  ///< values
  double share;
};
constexpr std::array shares_by_alignment = {Alignment{32, 1}, Alignment{16, 0.9}, Alignment{8, 0.8}, Alignment{4, 0.5},
                                            Alignment{2, 0.35}};
constexpr double unaligned_share = 0.2;

/// The power beyond that at rest grows with this power of the clock: voltage falls with the clock, less than in
/// proportion (docs/compute.md, *Power*).
constexpr double clock_exponent = 2;

std::uint64_t quotient_rounded_up(std::uint64_t a, std::uint64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

/// Matrix products by tiles and waves. The units compute one tile each at a time, so a product takes as many waves as
/// its tiles need, the last of which may be nearly empty:
///
///   max(waves * (FLOPs of a tile / rate of a unit + time of a wave), bytes / bandwidth) + launch
///
/// for the best of several sizes of tiles; smaller tiles reach a smaller share of the peak, by a factor for each
/// halving. Backward, a product is two: the gradients of both operands. In fp8, operands are cast first: 3 bytes for
/// each value. Weights are cast once a step where they stay on the NPU, and inference casts nothing.
///
/// Attention takes its FLOPs at a share of the bf16 peak in any precision.
/// What memory limits takes its bytes at a share of the bandwidth. Each kernel takes a time of its own besides.
class Products final : public ComputeModel {
 public:
  explicit Products(const Options& options)
      : options_(options.products),
        processor_(*options.products.processor.value_or(ProcessorName())),
        bandwidth_(options.local_memory.bytes_per_ns() * 1e9),
        clock_(clock_of(options_.power_cap, processor_)),
        peak_(options.peak_flops * options.efficiency * clock_),
        bf16_peak_((options.bf16_peak_flops > 0 ? options.bf16_peak_flops : options.peak_flops) * clock_),
        is_low_(options.has_fp8_peak()),
        operand_bytes_(options.operand_bytes < 2 ? options.operand_bytes : 1),
        low_share_(operand_bytes_ < 1 ? options_.nvfp4_share : options_.fp8_share),
        rounding_(options.rounding) {}

  /// Nodes of generated workloads carry their estimates. Nodes without are taken as one kernel.
  Time duration(const ComputeNode& node) const override {
    if (node.recorded > shortest_recorded) return node.recorded;
    if (node.num_ops == 0 && node.tensor_size == Bytes(0)) return Time::zero();
    const double flops = static_cast<double>(node.num_ops), bytes = static_cast<double>(node.tensor_size.count());
    return rounded(std::max(flops / (peak_ * processor_.product_share), memory_seconds(bytes)) + kernel_seconds());
  }

  Time estimate(const Operation& operation) const override {
    switch (operation.kind) {
      case Operation::Kind::product: {
        const auto& [m, k, n, copies] = operation.shape;
        const double aligned = aligned_share(k, n);
        const auto casts = operation.casts;
        // The gradients of weights are a product of activations and gradients, which are both cast.
        const auto casts_of_weights = casts == Operation::Casts::inputs ? Operation::Casts::all : casts;
        const bool infers = operation.is_inference;
        const double one = operation.is_backward ? product(m, n, k, aligned, casts, infers) +
                                                       product(k, m, n, aligned, casts_of_weights, infers)
                                                 : product(m, k, n, aligned, casts, infers);
        return rounded(static_cast<double>(copies) * one);
      }
      case Operation::Kind::attention: {
        const double share = attention_share(operation);
        const double flops = static_cast<double>(operation.flops);
        return rounded(std::max(flops / (bf16_peak_ * share), memory_seconds(static_cast<double>(operation.bytes))) +
                       kernel_seconds());
      }
      case Operation::Kind::elementwise:
        break;
    }
    if (operation.bytes == 0) return Time::zero();
    return rounded(memory_seconds(static_cast<double>(operation.bytes)) + kernel_seconds());
  }

 private:
  /// Returns the share of its rate that a product reaches whose matrices have these lengths of rows. Rows of all
  /// matrices, forward and backward, have k or n values.
  double aligned_share(std::uint64_t k, std::uint64_t n) const {
    if (!processor_.reads_aligned) return 1;
    for (const auto& [multiple, share] : shares_by_alignment)
      if (k % multiple == 0 && n % multiple == 0) return share;
    return unaligned_share;
  }
  static double clock_of(double cap, const Processor& processor) {
    if (cap <= 0 || processor.power <= 0) return 1;
    return clock_factor(cap, processor.power_at_rest, processor.power, clock_exponent);
  }
  double attention_share(const Operation& operation) const {
    if (options_.attention_share > 0) return options_.attention_share;
    if (options_.attention.kernel)
      if (const auto share = (*options_.attention.kernel)->share(processor_.name, operation))
        return *share * options_.attention.factor;
    return processor_.attention_share;
  }
  double memory_seconds(double bytes) const { return bytes / (bandwidth_ * options_.elementwise_share); }
  double kernel_seconds() const { return static_cast<double>(options_.kernel.ps()) * 1e-12; }
  Time rounded(double seconds) const { return duration_from_ns(seconds * 1e9, rounding_); }

  /// Returns the seconds of [m, k] by [k, n], whose rate is `aligned` of that of even sizes. Only its second operand
  /// can be weights, for which see `casts`.
  double product(std::uint64_t m, std::uint64_t k, std::uint64_t n, double aligned, Operation::Casts casts,
                 bool is_inference) const {
    const double unit_rate =
        (is_low_ ? low_share_ : 1.0) * peak_ * processor_.product_share / processor_.num_units * aligned;
    double best = HUGE_VAL;
    for (const Tile& tile : tiles) {
      const std::uint64_t num_tiles = quotient_rounded_up(m, tile.rows) * quotient_rounded_up(n, tile.columns);
      const double waves = std::ceil(static_cast<double>(num_tiles) / processor_.num_units);
      const double flops = 2.0 * static_cast<double>(tile.rows * tile.columns) * static_cast<double>(k);
      const double rate = unit_rate * std::pow(processor_.half_tile_share, tile.halvings);
      best = std::min(best, waves * (flops / rate + processor_.wave_seconds));
    }
    const double rows = static_cast<double>(m), inner = static_cast<double>(k), columns = static_cast<double>(n);
    const double bytes = (is_low_ ? operand_bytes_ : 2.0) * (rows * columns + columns * inner + rows * inner);
    const double moving = bytes / (bandwidth_ * (is_inference ? processor_.inference_bandwidth_share
                                                              : processor_.product_bandwidth_share));
    return std::max(best, moving) + processor_.launch_seconds + cast_seconds(rows * inner, columns * inner, casts);
  }

  double cast_seconds(double first, double second, Operation::Casts casts) const {
    if (!is_low_ || casts == Operation::Casts::none) return 0;
    return memory_seconds((2 + operand_bytes_) * (casts == Operation::Casts::all ? first + second : first));
  }

  ProductsOptions options_;
  const Processor& processor_;
  double bandwidth_;  ///< bytes per second
  double clock_;      ///< factor of the clock at the power cap
  double peak_, bf16_peak_;
  bool is_low_;
  double operand_bytes_, low_share_;  ///< size and share of a precision below bf16
  Rounding rounding_;
};

void require_peak_and_memory(const Options& options) {
  if (!(options.peak_flops > 0))
    throw Error(ErrorCode::bad_input, {.key = "system.compute.peak"}, "the compute model products needs the peak",
                "a positive rate");
  if (!(options.local_memory.bytes_per_ns() > 0))
    throw Error(ErrorCode::bad_input, {.key = "system.compute.local-memory.bandwidth"},
                "the compute model products needs the bandwidth of the local memory", "a positive bandwidth");
}

}  // namespace

extern const ModelType products_model;
constinit const ModelType products_model{
    .name = "products",
    .help = "matrix products by tiles and waves, attention and memory-bound operations by measured shares",
    .uses_operations = true,
    .estimates_operations = true,
    .validate = require_peak_and_memory,
    .make = [](const Options& options) -> std::unique_ptr<const ComputeModel> {
      return std::make_unique<Products>(options);
    },
};

}  // namespace orrery::compute
