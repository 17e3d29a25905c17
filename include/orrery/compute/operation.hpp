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
    product,     ///< product of matrices, of `shape`
    attention,   ///< the core of attention in one kernel, of `shape` for its scores
    elementwise  ///< limited by memory: norms, activations, sums, casts, the optimizer
  };
  /// Which operands of an fp8 product are cast to fp8 before it.
  enum class Casts : std::uint8_t {
    all,
    inputs,  ///< activations and gradients; the weights are fp8 already
    none
  };
  Kind kind = Kind::elementwise;
  std::string_view name = {};  ///< "attention.qkv"
  ProductShape shape = {};     ///< shape of the forward pass
  bool is_backward = false;    ///< a product: the gradients of both operands, which are two products
  bool is_causal = false;      ///< attention: half of the scores of `shape` are masked and not computed
  Casts casts = Casts::all;    ///< a product
  bool is_inference = false;   ///< a product of an inference engine, whose kernels read weights for few rows
  std::uint64_t flops = 0;     ///< computed: without the masked scores of causal attention
  std::uint64_t bytes = 0;     ///< moved
};

}  // namespace orrery::compute
