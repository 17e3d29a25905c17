#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "orrery/base/quantity.hpp"
#include "orrery/compute/model.hpp"

namespace orrery::compute {

/// A cache on the processor. All bytes pass it, and the bytes of a node that it holds pass no other level.
struct CacheOptions {
  Bytes size;  ///< 0: there is none
  Bandwidth bandwidth;
  double latency_ns = 0;
};

/// Memory that an NPU's load and store instructions reach besides its local memory, as over CXL.
struct ExpandedMemoryOptions {
  double share = 0;  ///< share of the bytes that a node moves, below 1; 0: there is none
  Bandwidth bandwidth;
  double latency_ns = 0;
};

/// What measured kernels of a processor reach. Sources: src/compute/processor_registry.cpp.
struct Processor {
  std::string_view name;
  std::string_view help;                 ///< one line
  double num_units = 0;                  ///< streaming multiprocessors, matrix units of a TPU
  double product_share = 0;              ///< share of the peak that a product of full tiles reaches
  double half_tile_share = 0;            ///< share of the above with tiles of half the size
  double wave_seconds = 0;               ///< time of a wave of tiles besides its FLOPs
  double launch_seconds = 0;             ///< time of a product besides its waves
  double product_bandwidth_share = 0;    ///< share of the memory's bandwidth that products reach
  double inference_bandwidth_share = 0;  ///< share of the memory's bandwidth that products of inference engines reach
  double attention_share = 0;  ///< share of the bf16 peak that fused attention reaches, forward and backward together
  bool reads_aligned = true;   ///< rows of matrices that are no multiple of 16 bytes are slower
  /// Watts at rest, and those that large products draw on the data sheet's clock; 0: not known.
  double power_at_rest = 0, power = 0;

  static std::span<const Processor* const> registry();
};
using ProcessorName = Registered<Processor>;

/// A rate of an attention kernel on a processor, of heads of 128 values, as shares of the bf16 peak.
struct AttentionRates {
  std::string_view processor;
  double forward = 0, backward = 0;  ///< rates of long sequences, with all scores computed
  double causal = 0;                 ///< factor of these for causal attention of long sequences
  /// Sequence at which attention reaches half of its rate, with all scores and causal.
  double half_length = 0, causal_half_length = 0;
  double small_head = 1;  ///< factor for heads of 64 values
};

/// A kernel of fused attention. Sources: src/compute/attention_registry.cpp.
struct AttentionKernel {
  std::string_view name;
  std::string_view help;  ///< one line
  std::span<const AttentionRates> rates;

  /// Returns the share of the bf16 peak that a core reaches on a processor. None if no rate of the processor is known.
  std::optional<double> share(std::string_view processor, const Operation& operation) const;
  static std::span<const AttentionKernel* const> registry();
};
using AttentionKernelName = Registered<AttentionKernel>;

/// What `products` knows of fused attention.
struct AttentionOptions {
  std::optional<AttentionKernelName> kernel;  ///< none: one share stands for all cores
  double factor = 1;                          ///< factor of the kernel's rates
};

/// Returns the factor by which a cap on the power of a processor slows its clock down while it computes products. The
/// power beyond that at rest grows with a power of the clock (`clock_exponent`). 1 if it draws less than the cap.
double clock_factor(double cap, double rest, double full, double clock_exponent);

/// Parameters of `products` besides the peak and the memory.
struct ProductsOptions {
  std::optional<ProcessorName> processor;  ///< none: the first of the registry
  AttentionOptions attention = {};
  double power_cap = 0;               ///< watts; 0: that of the processor's data sheet
  double attention_share = 0;         ///< 0: the processor's
  double elementwise_share = 0.8;     ///< share of the memory's bandwidth, reached by memory-bound operations
  double fp8_share = 0.9;             ///< share of the rate that bf16's share of the peak would give
  double nvfp4_share = 0.8;           ///< likewise for nvfp4
  Time kernel = Time::from_ns(4000);  ///< time of a memory-bound kernel besides its bytes
};

/// What stays in a systolic array while the rest passes it.
enum class Dataflow : std::uint8_t { weight_stationary, output_stationary, input_stationary };

/// The buffers of a systolic array for the operands of a product (input and filter) and for its results (output). One
/// half of each serves the array while the other is filled or emptied.
struct ArrayBuffers {
  Bytes input, filter, output;  ///< all 0: there are none
  Bandwidth bandwidth;          ///< between each of them and memory
  Bytes value = Bytes(2);       ///< size of an operand and of a result

  bool any() const { return input > Bytes(0) || filter > Bytes(0) || output > Bytes(0); }
};

struct SystolicOptions {
  std::uint32_t rows = 0, columns = 0;
  double cycle_ns = 0;
  Dataflow dataflow = Dataflow::weight_stationary;
  ArrayBuffers buffers = {};
};

/// Measured kernels, of the model `table`.
struct TableOptions {
  std::filesystem::path file;
  std::string kernels;    ///< contents of the file, as CSV
  std::string precision;  ///< precision of the workload, as tables name it
};

/// Share of an NPU's compute units that a collective takes while it transfers.
struct CollectivesShare {
  double fixed = 0;          ///< share of every collective
  bool of_channels = false;  ///< units on which the channels of its library run, instead of the share
  double of_channel = 0;     ///< with `of_channels`: share of one unit

  bool any() const { return fixed > 0 || of_channels; }
  /// Returns the share of a collective on so many units.
  double of(std::uint32_t num_channels) const {
    constexpr double most = 0.95;
    return of_channels ? std::min(num_channels * of_channel, most) : fixed;
  }
  friend bool operator==(const CollectivesShare& a, const CollectivesShare& b) {
    return a.fixed == b.fixed && a.of_channels == b.of_channels;
  }
};

/// How long a compute node takes.
struct Options {
  ModelName model;
  // For models that compute durations (ModelType::uses_operations):
  double peak_flops = 0;  ///< per second, in the precision of the workload
  Bandwidth local_memory;
  double local_memory_latency_ns = 0;
  CacheOptions cache = {};
  ExpandedMemoryOptions expanded = {};
  Rounding rounding = Rounding::up_to_ps;
  /// A node without bytes takes no time, whatever it computes; otherwise num_ops / peak.
  bool ignore_nodes_without_bytes = false;
  CollectivesShare collectives_share = {};
  double experts_share = 0;    ///< share of the compute units that an exchange of experts holds from begin to end
  double efficiency = 1;       ///< share of the peak that nodes reach at most; `products`: factor of product rates
  double bf16_peak_flops = 0;  ///< per second; 0: peak_flops
  double operand_bytes = 2;    ///< size of an operand of products in the precision of the workload
  ProductsOptions products = {};
  SystolicOptions systolic = {};
  TableOptions table = {};

  /// Says whether products are of fp8 or below, which a peak far above that of bf16 tells.
  bool has_fp8_peak() const { return bf16_peak_flops > 0 && peak_flops > 1.5 * bf16_peak_flops; }
  /// Throws Error (bad_input) that names the key of an option with which the model cannot work.
  void validate() const {
    if (model->validate != nullptr) model->validate(*this);
  }
};

}  // namespace orrery::compute
