#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::trace {

/// Collects the tensors of one graph after the other from what nodes list. Keys, small numbers, tell tensors
/// apart.
class TensorLists {
 public:
  void start();
  /// Nodes in ascending order, the inputs of each before its outputs. What has no bytes is no tensor. The size that
  /// the key was given before, if it is another one: nothing is listed then. O(1).
  std::optional<Bytes> list(std::uint32_t node, std::uint32_t key, Bytes size, bool makes);
  /// Of all tensors so far.
  Bytes size() const { return size_; }
  /// [num_tensors]
  const std::vector<std::uint32_t>& keys() const { return keys_; }
  /// What was listed since the start.
  Tensors finish(std::uint32_t num_nodes);

 private:
  std::optional<std::uint32_t> find(std::uint32_t key) const;

  Tensors tensors_;
  std::vector<std::uint32_t> keys_;           ///< [num_tensors]
  std::vector<std::uint32_t> last_listing_;   ///< [num_tensors] index into the listings
  std::unordered_set<std::uint32_t> empty_;   ///< keys of what has no bytes
  std::vector<std::uint32_t> number_of_key_;  ///< [largest key + 1] as far as `keys_` agrees; kept for the next graph
  Bytes size_;
};

}  // namespace orrery::trace
