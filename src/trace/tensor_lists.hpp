#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/trace/graph.hpp"
#include "slots.hpp"

namespace orrery::trace {

/// Collects the tensors of a graph from what its nodes list. Tensors are told apart by keys.
class TensorLists {
 public:
  /// Nodes in ascending order, the inputs of each before its outputs. What has no bytes is no tensor. The size that
  /// the key was given before, if it is another one: nothing is listed then. O(1).
  std::optional<Bytes> list(std::uint32_t node, std::uint32_t key, Bytes size, bool makes);
  /// Of all tensors so far.
  Bytes size() const { return size_; }
  /// [num_tensors]
  const std::vector<std::uint32_t>& keys() const { return keys_; }
  /// What was listed; nothing more may be.
  Tensors finish(std::uint32_t num_nodes);

 private:
  static constexpr std::uint32_t empty = most_tensors;  ///< the number of what has no bytes

  Tensors tensors_;
  std::vector<std::uint32_t> keys_;          ///< [num_tensors]
  std::vector<std::uint32_t> last_listing_;  ///< [num_tensors] index into the listings
  Slots number_of_key_;
  Bytes size_;
};

}  // namespace orrery::trace
