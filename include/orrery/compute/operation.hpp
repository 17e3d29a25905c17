#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::compute {

/// `copies` products of [m, k] by [k, n].
struct ProductShape {
  std::uint64_t m = 0, k = 0, n = 0;
  std::uint64_t copies = 1;

  friend bool operator==(const ProductShape&, const ProductShape&) = default;
};

/// One operation of a generated workload, for models that estimate operations one by one.
struct Operation {
  enum class Kind : std::uint8_t {
    product,     ///< of matrices, of `shape`
    attention,   ///< the core of attention in one kernel, of `shape` for its scores
    elementwise  ///< limited by memory: norms, activations, sums, casts, the optimizer
  };
  Kind kind = Kind::elementwise;
  std::string_view name = {};  ///< "attention.qkv"
  ProductShape shape = {};     ///< of the forward pass
  bool is_backward = false;    ///< a product: the gradients of both operands, which are two products
  bool is_causal = false;      ///< attention: a token attends to those before it only
  std::uint64_t flops = 0;     ///< by the usual count, which takes the scores of causal attention as a whole square
  std::uint64_t bytes = 0;     ///< moved
};

}  // namespace orrery::compute
