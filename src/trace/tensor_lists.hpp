#pragma once

#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "orrery/base/quantity.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::trace {

/// Collects the tensors that nodes list, of one graph after the other. Keys, which are small numbers, tell tensors
/// apart.
class TensorLists {
 public:
  /// Begins a graph whose nodes list `most_listings` tensors at most.
  void start(std::size_t most_listings);
  /// Lists a tensor of a node. Nodes come in ascending order, the inputs of each before its outputs. A size of 0 bytes
  /// is no tensor. If the key had another size before, returns that size and lists nothing. O(1).
  std::optional<Bytes> list(std::uint32_t node, std::uint32_t key, Bytes size, bool makes);
  /// Returns the size of all tensors of this graph so far.
  Bytes size() const { return size_; }
  /// Returns the keys of the tensors. [num_tensors]
  const std::vector<std::uint32_t>& keys() const { return keys_; }
  /// Returns what was listed since `start`.
  Tensors finish(std::uint32_t num_nodes);

 private:
  std::optional<std::uint32_t> find(std::uint32_t key) const;

  Tensors tensors_;
  std::vector<std::uint32_t> keys_;           ///< [num_tensors]
  std::vector<std::uint32_t> last_listing_;   ///< [num_tensors] index into the listings
  std::unordered_set<std::uint32_t> empty_;   ///< keys whose size is 0 bytes
  std::vector<std::uint32_t> number_of_key_;  ///< [largest key + 1]; an entry counts only if `keys_` agrees with it
  Bytes size_;
};

}  // namespace orrery::trace
