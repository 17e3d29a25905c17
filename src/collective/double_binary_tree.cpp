#include <bit>
#include <span>
#include <vector>

#include "algorithm.hpp"

namespace orrery::collective {
namespace {

/// An in-order binary tree over the nodes 1, 2, ..., whose root hangs from node 0: node 0 is the root of the whole, and
/// odd nodes are leaves. Source: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction
/// and scan", Parallel Computing 35, 2009.
///
/// In the tree of odd chunks position i is node i. The tree of even chunks is its mirror image (even sizes) or shifted
/// by one (odd sizes), so that the leaves of one tree are inner in the other. O(positions) memory.
class PositionsOfTree {
 public:
  PositionsOfTree(std::uint32_t size, bool is_odd_chunk) : parent_(size), first_(size + 1, 0), children_(size - 1) {
    const auto position_of = [&](std::uint32_t node) {
      if (is_odd_chunk) return node;
      return size % 2 == 0 ? size - 1 - node : (node + 1) % size;
    };
    root_ = position_of(0);
    for (std::uint32_t node = 1; node < size; ++node) {
      const std::uint32_t parent = position_of(parent_node(node, size));
      parent_[position_of(node)] = parent;
      ++first_[parent + 1];
    }
    for (std::uint32_t position = 0; position < size; ++position) first_[position + 1] += first_[position];
    std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
    for (std::uint32_t position = 0; position < size; ++position)
      if (position != root_) children_[next[parent_[position]]++] = position;
  }

  bool is_root(std::uint32_t position) const { return position == root_; }
  std::uint32_t parent(std::uint32_t position) const { return parent_[position]; }
  /// Returns the children in ascending order.
  std::span<const std::uint32_t> children(std::uint32_t position) const {
    return std::span(children_).subspan(first_[position], first_[position + 1] - first_[position]);
  }

 private:
  /// A node with lowest set bit b has its parent at (node - b) | 2b, or at node - b where that does not exist.
  static std::uint32_t parent_node(std::uint32_t node, std::uint32_t size) {
    const std::uint32_t lowest = node & (~node + 1);
    const std::uint64_t other_side = std::uint64_t{node - lowest} | (std::uint64_t{lowest} << 1);
    return other_side < size ? static_cast<std::uint32_t>(other_side) : node - lowest;
  }

  std::uint32_t root_ = 0;
  std::vector<std::uint32_t> parent_;    ///< [positions] but for the root
  std::vector<std::uint32_t> first_;     ///< [positions + 1] into children_
  std::vector<std::uint32_t> children_;  ///< children of all positions
};

/// A chunk goes whole over one of two trees: up with reductions, and then down.
class DoubleBinaryTree final : public SteppedAlgorithm {
 public:
  explicit DoubleBinaryTree(const GroupTask& task) : SteppedAlgorithm(task), tree_(task.size, task.is_odd_chunk) {}

  bool begins_with_endpoint_delay() const override { return false; }
  std::size_t memory() const override { return sizeof(*this) + 3 * task().size * sizeof(std::uint32_t); }
  std::uint64_t num_steps(std::uint32_t) const override { return num_tree_steps; }
  std::uint64_t depth() const override { return 2 * static_cast<std::uint64_t>(std::bit_width(task().size - 1)); }
  BlocksOfMessage blocks(std::uint32_t, std::uint64_t k, std::uint32_t) const override {
    return all_blocks(task().size, k == with_parent);
  }

 private:
  /// A position waits for its children; it sends to its parent and waits for it; it sends to its children. The root has
  /// nobody to send to or to wait for in the second step.
  enum TreeStep : std::uint32_t { from_children, with_parent, to_children, num_tree_steps };

  void fill(std::uint32_t position, std::uint64_t k, Step& out) const override {
    const auto children = tree_.children(position);
    out.bytes = task().bytes;
    out.pays_endpoint_delay = false;
    if (k == from_children) {
      out.receives.assign(children.begin(), children.end());
      pay(children.size(), true, out);
    } else if (k == to_children) {
      for (const std::uint32_t child : children) out.sends.push_back({child, with_parent});
    } else if (!tree_.is_root(position)) {
      out.sends.push_back({tree_.parent(position), from_children});
      out.receives.push_back(tree_.parent(position));
      pay(children.size(), false, out);
    }
  }

  /// A position reduces what each child sent. Under `astra-sim` rules (GroupTask::reduces_every_message is false) an
  /// inner position pays one reduction on the way up and one on the way down, as measured in ASTRA-sim 2.
  void pay(std::size_t num_children, bool is_up, Step& out) const {
    out.pays_endpoint_delay = true;
    if (!task().reduces) return;
    out.reduced = task().bytes;
    if (task().reduces_every_message)
      out.num_reductions = is_up ? static_cast<std::uint32_t>(num_children) : 0;
    else
      out.num_reductions = num_children > 0 ? 1 : 0;
  }

  PositionsOfTree tree_;
};

}  // namespace

std::unique_ptr<const SteppedAlgorithm> make_double_binary_tree(const GroupTask& task) {
  return std::make_unique<DoubleBinaryTree>(task);
}

}  // namespace orrery::collective
