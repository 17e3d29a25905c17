#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "layer.hpp"

namespace orrery::workload {

/// Says whether weights are cast below bf16 once a step and then stay on the NPU so.
inline bool casts_weights_once(const Parallel& parallel) {
  return is_below_bf16(parallel.precision) && !parallel.is_inference() && parallel.sharding.zero < 3 &&
         !parallel.sharding.offload.parameters;
}

/// Name of the operator in which an NPU waits for the host.
inline constexpr std::string_view host_operator = "host";

/// Makes operators with the sizes that they have on one NPU.
class Operators {
 public:
  explicit Operators(const Parallel& parallel) : parallel_(parallel) {}

  /// Returns the forward pass of [m, k] times [k, n]: 2 m k n FLOPs; every operand and the result are moved once.
  Operator product(const char* name, std::uint64_t m, std::uint64_t k, std::uint64_t n) const {
    return weighted(name, m, k, n, k * n);
  }
  /// Returns such a product with `weights` values of which each row needs only some, as those of experts.
  Operator weighted(const char* name, std::uint64_t m, std::uint64_t k, std::uint64_t n, std::uint64_t weights) const {
    return {.name = name,
            .flops = 2 * m * k * n,
            .bytes = operand_bytes(parallel_.precision, m * k + weights + m * n),
            .operation = compute::Operation::Kind::product,
            .shape = {m, k, n},
            .has_weights = true,
            .casts = casts(),
            .is_inference = parallel_.is_inference()};
  }
  /// Returns the backward pass of a product: the gradients of both operands.
  static Operator backward(const char* name, const Operator& product) {
    return {.name = name,
            .flops = 2 * product.flops,
            .bytes = 2 * product.bytes,
            .operation = product.operation,
            .shape = product.shape,
            .is_backward = true,
            .has_weights = product.has_weights,
            .casts = product.casts,
            .is_inference = product.is_inference};
  }
  /// Returns an operator of the forward pass as the backward pass computes it again: it makes no gradients.
  static Operator again(Operator forward) {
    forward.has_weights = false;
    return forward;
  }
  /// Returns two operators that together are one. The first is this share of it.
  static std::pair<Operator, Operator> split(const Operator& whole, double share) {
    Operator first = whole, second = whole;
    const auto part = [share](std::uint64_t of) { return static_cast<std::uint64_t>(static_cast<double>(of) * share); };
    first.flops = part(whole.flops);
    first.bytes = part(whole.bytes);
    first.duration = Time::from_ps(static_cast<std::int64_t>(part(static_cast<std::uint64_t>(whole.duration.ps()))));
    first.share = whole.share * share;
    second.flops = whole.flops - first.flops;
    second.bytes = whole.bytes - first.bytes;
    second.duration = whole.duration - first.duration;
    second.share = whole.share - first.share;
    return {first, second};
  }
  /// Returns work that memory limits: its FLOPs do not count.
  static Operator elementwise(const char* name, std::uint64_t bytes) { return {.name = name, .bytes = bytes}; }

 private:
  /// Inference keeps weights in fp8, and its kernels write activations in fp8. Training casts activations for each
  /// product, and weights once a step unless they are brought to the NPU for each pass.
  compute::Operation::Casts casts() const {
    using enum compute::Operation::Casts;
    if (parallel_.is_inference()) return none;
    return casts_weights_once(parallel_) ? inputs : all;
  }

  const Parallel& parallel_;
};

/// Adds a collective, unless its group is a single NPU.
void add_collective(std::vector<Operator>& operators, const Parallel& parallel, Operator::Kind kind, const char* name,
                    trace::CollectiveKind collective, GroupKind group, std::uint64_t bytes);

/// Returns the part of a backward pass that makes the gradients of inputs, with all communication, or the part that
/// makes the gradients of weights, which is half of each product with weights.
std::vector<Operator> inputs_part(const std::vector<Operator>& backward);
std::vector<Operator> weights_part(const std::vector<Operator>& backward);

/// Says whether the first and the last part of the model are on different NPUs, so that both hold a tied embedding.
bool has_ends_apart(const Parallel& parallel);

/// Returns how many weights the products of these layers have on the NPU.
std::uint64_t weights_of_products(std::span<const Layer* const> layers);

/// Returns the number of NPUs of a group.
std::uint32_t group_size(const Parallel& parallel, GroupKind group);

}  // namespace orrery::workload
