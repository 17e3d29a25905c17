#include <algorithm>
#include <array>

#include "line.hpp"

namespace orrery::collective {
namespace {

// A chunk goes whole over one of two trees, even chunks over tree 0: up with reductions, then down.
//
//   up[i]   = max(s[i], max over children c of max(up[c], s[i] + D) + L(c, i)) + e + p     (leaf: s[i] + e)
//   down[i] = max(up[i], max(down[parent], up[i] + D) + L(parent, i)) + e + q              (root: up[i])
//
// Positions do not all grow away from the root, so a tree lists its nodes each after its parent.

struct Node {
  std::uint32_t place = 0;
  std::uint32_t parent = 0;  ///< place; the root's own for the root
  Ps link = 0;               ///< to or from the parent
  Ps word = 0;               ///< with rendezvous the receiver's word over the same way
  Ps up_cost = 0;            ///< after all children's data are there; 0 in a leaf
  Ps down_cost = 0;
};

class DoubleBinaryTree final : public LineProgram {
 public:
  DoubleBinaryTree(const LineContext& context, std::array<std::vector<Node>, 2> trees)
      : size_(context.axis.size), rendezvous_(context.rendezvous), trees_(std::move(trees)) {
    for (const std::uint64_t tree : {0U, 1U}) {
      Ps bound = 0;
      for (const Node& node : trees_[tree])
        bound = plus(bound, plus(plus(times(plus(node.link, node.word), 2), node.up_cost), node.down_cost));
      durations_[tree] = last_finish(*this, tree, size_);
    }
  }

  bool alike() const override { return false; }
  Ps duration(std::uint64_t chunk) const override { return durations_[chunk % 2]; }

  std::size_t memory() const override { return sizeof(*this) + 2 * trees_[0].size() * sizeof(Node); }

  void run(std::uint64_t chunk, std::span<Ps> times, Scratch& scratch) const override {
    scratch.first.resize(size_);
    for (std::size_t at = 0; at < times.size(); at += size_)
      run_line(trees_[chunk % 2], times.data() + at, scratch.first.data());
  }

 private:
  void run_line(const std::vector<Node>& tree, Ps* line, Ps* ready) const {
    for (std::size_t i = 0; i < size_; ++i) ready[i] = line[i];
    // Children come after their parents, so that backwards a node's `ready` holds all that its children sent.
    for (std::size_t k = size_; k-- > 1;) {
      const Node& node = tree[k];
      Ps& up = ready[node.place];
      up += node.up_cost;
      const Ps sent = rendezvous_ ? std::max(up, line[node.parent] + node.word) : up;
      ready[node.parent] = std::max(ready[node.parent], sent + node.link);
    }
    line[tree[0].place] = ready[tree[0].place] + tree[0].up_cost;
    for (std::size_t k = 1; k < size_; ++k) {
      const Node& node = tree[k];
      const Ps up = ready[node.place];
      const Ps sent = rendezvous_ ? std::max(line[node.parent], up + node.word) : line[node.parent];
      line[node.place] = std::max(up, sent + node.link) + node.down_cost;
    }
  }

  std::uint32_t size_;
  bool rendezvous_;
  std::array<std::vector<Node>, 2> trees_;
  std::array<Ps, 2> durations_{};
};

std::vector<Node> make_tree(const PhaseShape& shape, const LineContext& context, std::uint32_t tree) {
  const std::uint32_t n = context.axis.size;
  const Ps reduction = context.reduction(shape.size);
  std::vector<std::vector<std::uint32_t>> children(n);
  for (std::uint32_t position = 1; position < n; ++position) children[tree_parent(position, n)].push_back(position);
  std::vector<std::uint32_t> order{0};
  for (std::size_t k = 0; k < order.size(); ++k)
    order.insert(order.end(), children[order[k]].begin(), children[order[k]].end());
  std::vector<Node> nodes;
  for (const std::uint32_t position : order) {
    Node node;
    node.place = tree_place(position, tree, n);
    node.parent = position == 0 ? node.place : tree_place(tree_parent(position, n), tree, n);
    if (position != 0) {
      node.link = context.link(node.place, node.parent, shape.size);
      node.word = context.control(node.place, node.parent);
    }
    const TreeReductions pays = tree_reductions(shape, children[position].size(), context.rules);
    node.up_cost = plus(context.endpoint_delay, times(reduction, pays.up));
    node.down_cost = plus(context.endpoint_delay, times(reduction, pays.down));
    nodes.push_back(node);
  }
  return nodes;
}

}  // namespace

std::uint32_t tree_parent(std::uint32_t position, std::uint32_t size) {
  const std::uint32_t lowest = position & (~position + 1);
  const std::uint64_t sibling_side = std::uint64_t{position - lowest} | (std::uint64_t{lowest} << 1);
  return sibling_side < size ? static_cast<std::uint32_t>(sibling_side) : position - lowest;
}

std::uint32_t tree_place(std::uint32_t position, std::uint32_t tree, std::uint32_t size) {
  if (tree == 1) return position;
  return size % 2 == 0 ? size - 1 - position : (position + 1) % size;
}

TreeReductions tree_reductions(const PhaseShape& shape, std::size_t num_children, const Rules& rules) {
  if (!shape.reduces) return {};
  if (rules.reduce_every_message) return {num_children, 0};
  // As measured, ASTRA-sim's inner nodes pay a reduction on the way down too.
  const std::uint64_t is_inner = num_children > 0 ? 1 : 0;
  return {is_inner, is_inner};
}

std::unique_ptr<LineProgram> make_double_binary_tree(const PhaseShape& shape, const LineContext& context) {
  ensure(shape.kind == Kind::all_reduce, "a double binary tree where it has no rule");
  return std::make_unique<DoubleBinaryTree>(
      context, std::array<std::vector<Node>, 2>{make_tree(shape, context, 0), make_tree(shape, context, 1)});
}

}  // namespace orrery::collective
