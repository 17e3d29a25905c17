#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/pdes/model.hpp"

namespace orrery::npu {

/// The least lookahead bounds over the NPUs of a rank, in a tournament tree. An NPU that has changed costs O(log NPUs),
/// and only when the bounds are asked for.
class LookaheadTree {
 public:
  explicit LookaheadTree(std::size_t num_npus)
      : num_npus_(num_npus), tree_(2 * std::max<std::size_t>(num_npus, 1)), is_marked_(num_npus, 0) {}

  /// Takes note that the bounds of an NPU may have changed.
  void mark(std::uint32_t npu) {
    if (is_marked_[npu]) return;
    is_marked_[npu] = 1;
    marked_.push_back(npu);
  }

  /// Returns the least bounds. `of(npu)` returns those of one NPU.
  template <class Of>
  pdes::LookaheadBounds least(Of&& of) {
    for (const auto npu : marked_) {
      is_marked_[npu] = 0;
      set(npu, of(npu));
    }
    marked_.clear();
    return num_npus_ == 0 ? pdes::LookaheadBounds{} : tree_[1];
  }

 private:
  void set(std::uint32_t npu, const pdes::LookaheadBounds& bounds) {
    std::size_t i = npu + num_npus_;
    tree_[i] = bounds;
    for (i /= 2; i >= 1; i /= 2) {
      const auto& left = tree_[2 * i];
      const auto& right = tree_[2 * i + 1];
      tree_[i] = {least(left.sends, right.sends), least(left.calls, right.calls), least(left.relays, right.relays)};
    }
  }

  static pdes::LookaheadBound least(const pdes::LookaheadBound& a, const pdes::LookaheadBound& b) {
    return {std::min(a.output, b.output), std::min(a.reaction, b.reaction)};
  }

  std::size_t num_npus_;
  std::vector<pdes::LookaheadBounds> tree_;  // [2 num_npus], the leaves in the upper half
  std::vector<char> is_marked_;              // [num_npus]
  std::vector<std::uint32_t> marked_;
};

}  // namespace orrery::npu
