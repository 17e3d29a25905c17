#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/pdes/model.hpp"

namespace orrery::npu {

/// The least horizon over the NPUs of a rank, kept in a tournament tree: an NPU that changed costs O(log NPUs), and
/// only when the horizon is asked for.
class HorizonTree {
 public:
  explicit HorizonTree(std::size_t num_npus)
      : num_npus_(num_npus), tree_(2 * std::max<std::size_t>(num_npus, 1)), dirty_(num_npus, 0) {}

  void mark(std::uint32_t npu) {
    if (dirty_[npu]) return;
    dirty_[npu] = 1;
    changed_.push_back(npu);
  }

  /// `of(npu)` tells the horizon of one NPU.
  template <class Of>
  pdes::LookaheadBounds least(Of&& of) {
    for (const auto npu : changed_) {
      dirty_[npu] = 0;
      set(npu, of(npu));
    }
    changed_.clear();
    return num_npus_ == 0 ? pdes::LookaheadBounds{} : tree_[1];
  }

 private:
  void set(std::uint32_t npu, const pdes::LookaheadBounds& horizon) {
    std::size_t i = npu + num_npus_;
    tree_[i] = horizon;
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
  std::vector<pdes::LookaheadBounds> tree_;  // [2 num_npus] leaves in the upper half
  std::vector<char> dirty_;
  std::vector<std::uint32_t> changed_;
};

}  // namespace orrery::npu
