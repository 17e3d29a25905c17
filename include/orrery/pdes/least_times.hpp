#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/base/time.hpp"

namespace orrery::pdes {

/// Some times and the least of them, in a tournament tree. All are max() at first. `set` and `first` cost
/// O(log count).
class LeastTimes {
 public:
  explicit LeastTimes(std::size_t count) : leaves_(std::bit_ceil(count)), tree_(2 * leaves_, Time::max()) {}

  Time operator[](std::size_t i) const { return tree_[leaves_ + i]; }
  Time least() const { return tree_[1]; }
  /// Returns the place of the least time, the first one of equal ones.
  std::uint32_t first() const {
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + static_cast<std::size_t>(tree_[2 * node + 1] < tree_[2 * node]);
    return static_cast<std::uint32_t>(node - leaves_);
  }
  void set(std::size_t i, Time time) {
    std::size_t node = leaves_ + i;
    tree_[node] = time;
    while (node > 1) {
      node /= 2;
      const Time least = std::min(tree_[2 * node], tree_[2 * node + 1]);
      if (tree_[node] == least) return;
      tree_[node] = least;
    }
  }

 private:
  std::size_t leaves_;
  std::vector<Time> tree_;  // [2 leaves_], the leaves in the upper half
};

}  // namespace orrery::pdes
