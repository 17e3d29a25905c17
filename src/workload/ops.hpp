#pragma once

#include "layer.hpp"

namespace orrery::workload {

/// The layers' operators, with the sizes that they have on one NPU.
class Ops {
 public:
  explicit Ops(const Parallel& parallel) : parallel_(parallel) {}

  /// [m, k] times [k, n], forward: 2 m k n FLOPs, every operand and result moved once.
  Op product(const char* name, std::uint64_t m, std::uint64_t k, std::uint64_t n) const {
    return weighted(name, m, k, n, k * n);
  }
  /// The same with `weights` values of which each row needs some only (experts).
  Op weighted(const char* name, std::uint64_t m, std::uint64_t k, std::uint64_t n, std::uint64_t weights) const {
    return {
        .name = name, .flops = 2 * m * k * n, .bytes = operand_bytes(parallel_.precision) * (m * k + weights + m * n)};
  }
  /// A product's backward pass: the gradients of both operands.
  static Op backward(const char* name, const Op& product) {
    return {.name = name, .flops = 2 * product.flops, .bytes = 2 * product.bytes};
  }
  /// Work that is bound by memory: its FLOPs do not count.
  static Op elementwise(const char* name, std::uint64_t bytes) { return {.name = name, .bytes = bytes}; }

 private:
  const Parallel& parallel_;
};

/// Adds a collective unless its group is a single NPU.
void communicate(std::vector<Op>& ops, const Parallel& parallel, Op::Kind kind, const char* name,
                 trace::CollectiveKind collective, GroupKind group, std::uint64_t bytes);

/// NPUs of a group.
std::uint32_t group_size(const Parallel& parallel, GroupKind group);

}  // namespace orrery::workload
