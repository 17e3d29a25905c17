#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/base/registry.hpp"
#include "orrery/compute/operation.hpp"

namespace orrery::compute {

struct Options;

/// What the trace says of a compute node.
struct ComputeNode {
  std::uint64_t num_ops = 0;  ///< floating-point operations
  Bytes tensor_size;          ///< bytes that the node moves
  Time recorded;              ///< its duration when the trace was recorded, at least `shortest_recorded`
};

/// Recorded durations of 0 become this (docs/model.md, 2).
constexpr Time shortest_recorded = Time::from_ns(1);

/// Says how long compute nodes take. Immutable.
class ComputeModel {
 public:
  virtual ~ComputeModel() = default;

  /// Returns the duration of a node; max() if it does not fit.
  virtual Time duration(const ComputeNode& node) const = 0;
  /// Returns the duration of an operation of a generated workload; max() if it does not fit. Only models with
  /// ModelType::estimates_operations are asked.
  virtual Time estimate(const Operation& operation) const {
    return duration({operation.flops, Bytes(operation.bytes), shortest_recorded});
  }
  /// Returns why an estimate is less certain than others; none if it is not.
  virtual std::optional<std::string> doubt(const Operation&) const { return {}; }
  /// Returns the names of measured kernels that are none of these operations.
  virtual std::vector<std::string> unused(std::span<const Operation>) const { return {}; }
};

/// A compute model of the registry.
struct ModelType {
  std::string_view name;
  std::string_view help;         ///< one line
  bool uses_recorded = false;    ///< durations are those that the trace recorded
  bool uses_operations = false;  ///< durations follow from the operations and bytes of nodes
  /// Durations of generated workloads are those of their operations, one by one. Traces name no operations: their nodes
  /// keep recorded durations.
  bool estimates_operations = false;
  /// Throws Error (bad_input) that names the key of an option with which the model cannot work. Null: it works with
  /// all.
  void (*validate)(const Options& options) = nullptr;
  /// Makes a model. The options must outlive it.
  std::unique_ptr<const ComputeModel> (*make)(const Options& options) = nullptr;

  /// Returns all models: the table of src/compute/model_registry.cpp.
  static std::span<const ModelType* const> registry();
};

using ModelName = Registered<ModelType>;

/// Makes the model that the options choose. The options must outlive it.
std::unique_ptr<const ComputeModel> make_model(const Options& options);

}  // namespace orrery::compute
