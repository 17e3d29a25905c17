#include "layer.hpp"

#include <tuple>

namespace orrery::workload {
namespace {

/// Returns all but the name.
auto parts_of(const Layer& layer) {
  const auto& [name, forward, backward, recomputation, beside_model_flops, dense, experts, sharded, of_dense,
               activations, cache, recomputed, output, update, is_beside_blocks] = layer;
  return std::tie(beside_model_flops, dense, experts, sharded, of_dense, activations, cache, recomputed, output, update,
                  is_beside_blocks, forward, backward, recomputation);
}

}  // namespace

bool are_alike(const Layer& a, const Layer& b) { return parts_of(a) == parts_of(b); }

}  // namespace orrery::workload
