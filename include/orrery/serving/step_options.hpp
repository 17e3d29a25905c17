#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/base/registry.hpp"
#include "orrery/base/time.hpp"
#include "orrery/compute/model.hpp"
#include "orrery/serving/number_format.hpp"
#include "orrery/serving/options.hpp"
#include "orrery/serving/step_model.hpp"
#include "orrery/trace/graph.hpp"
#include "orrery/workload/transformer.hpp"

namespace orrery::serving {

struct StepModelType;
using StepModelName = Registered<StepModelType>;

/// Coefficients of a fit as DistServe publishes it, in ms: a + b * tokens + q * (squares of the lengths of prompts, or
/// requests that generate).
struct FittedCost {
  std::vector<double> prefill, decode, large_decode;  ///< three each
  std::uint32_t threshold = 0;                        ///< requests from which on `large_decode` holds; 0: never

  friend bool operator==(const FittedCost&, const FittedCost&) = default;
};

/// Names of the contents of tables of operators.
struct TableNames {
  std::string products = "bfloat16", attention = "bfloat16", experts = {}, distribution = "power_law_1.2";

  friend bool operator==(const TableNames&, const TableNames&) = default;
};

/// How the experts of data-parallel ranks exchange rows.
enum class Exchange : std::uint8_t { gather, all_to_all, each_expert };

/// How many experts have work, and how much the busiest rank has.
struct ExpertOptions {
  enum class Load : std::uint8_t { balanced, power_law, file };
  Load load = Load::balanced;
  double exponent = 1.2;            ///< power_law
  std::filesystem::path file = {};  ///< file: a row of shares for each layer
  Exchange exchange = Exchange::gather;
  double dispatch_bytes = 2, combine_bytes = 2;  ///< bytes of a value; not with gather

  friend bool operator==(const ExpertOptions&, const ExpertOptions&) = default;
};

/// What the host takes, of which the NPUs wait for some.
struct HostTimes {
  Time step, sequence;  ///< time between steps, fixed and for each request, in which the NPUs wait
  Time layer;           ///< time in which the host launches the operators of a layer, while those before it run
};

/// Links of a ring.
struct RingLinks {
  Bandwidth bandwidth = Bandwidth::from_bytes_per_ns(450);
  Time latency = Time::from_ns(1000);
};

/// Times of the collectives of the NPUs of an instance, which are alone on their links.
class CollectiveTimes {
 public:
  virtual ~CollectiveTimes() = default;

  /// Returns the time of a collective that all NPUs begin together; `bytes` are those of a node in a trace.
  virtual Time duration(trace::CollectiveKind kind, Bytes bytes) = 0;
};

/// How long steps take.
struct StepOptions {
  StepModelName model;
  LinearCost linear;
  FittedCost fitted;
  std::filesystem::path tables;
  TableNames names;
  double skew = 0;                         ///< skew of attention over unequal contexts
  std::vector<std::uint64_t> graph_sizes;  ///< recorded graphs, ascending; empty: none
  double small_us = 1.5;                   ///< time of a kernel that only moves memory, beside its bytes
  Bandwidth memory;                        ///< bandwidth of an NPU's memory
  RingLinks ring;                          ///< links inside an instance of `profile`
  HostTimes host;
  ExpertOptions experts;
  std::shared_ptr<const compute::ComputeModel> compute;      ///< null: the system estimates no operations
  workload::Precision products = workload::Precision::bf16;  ///< precision in which `compute` estimates products
  /// Returns the times of collectives of the tensor-parallel ranks of an instance: of `npus`, or of the first ones of
  /// the system if there are none. `entry`: key of its entry in serving.instances.
  std::function<std::shared_ptr<CollectiveTimes>(std::span<const NpuId> npus, const InstanceParallel& parallel,
                                                 const std::string& entry)>
      collectives;
  /// Returns the time of a message from an NPU of a stage to the one in its place of the next stage, the longest of
  /// all. The arguments are those of `collectives`.
  std::function<std::function<Time(Bytes)>(std::span<const NpuId> npus, const InstanceParallel& parallel,
                                           const std::string& entry)>
      hops;
  bool over_network = false;  ///< collectives and activations are messages of the simulated network
  std::function<std::shared_ptr<CollectivePrograms>()> programs;  ///< needed with over_network
};

/// Inputs of step times besides the options.
struct StepContext {
  const StepOptions& options;
  const workload::Transformer* model = nullptr;  ///< null: none is given
  InstanceParallel parallel;
  FormatName weights, kv;
  std::uint64_t seed = 1;
  std::uint32_t number = 0;          ///< number of the first scheduler
  std::span<const NpuId> npus = {};  ///< NPUs of the instance; empty: any
  std::string entry = {};            ///< key of its entry in serving.instances
};

/// A model of step times, of the registry.
struct StepModelType {
  std::string_view name, help;
  bool needs_model = false;
  bool uses_network = false;  ///< steps depend on the NPUs of the instance
  std::shared_ptr<StepModel> (*make)(const StepContext& context) = nullptr;

  static std::span<const StepModelType* const> registry();
};

}  // namespace orrery::serving
