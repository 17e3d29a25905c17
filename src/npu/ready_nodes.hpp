#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "orrery/base/ids.hpp"

namespace orrery::npu {

/// Nodes that are ready, of one resource. The least comes first: NodeId values, or pairs of a rank and such a value.
template <class Item>
class ReadyNodes {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  auto begin() const { return heap_.begin(); }
  auto end() const { return heap_.end(); }

  void add(Item item) {
    heap_.push_back(item);
    std::ranges::push_heap(heap_, std::greater<>());
  }
  /// Must not be empty.
  Item take() {
    std::ranges::pop_heap(heap_, std::greater<>());
    const Item first = heap_.back();
    heap_.pop_back();
    return first;
  }

 private:
  std::vector<Item> heap_;
};

}  // namespace orrery::npu
