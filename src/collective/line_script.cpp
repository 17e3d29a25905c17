#include "line_script.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "in_switch.hpp"
#include "orrery/base/error.hpp"
#include "steps.hpp"

namespace orrery::collective {
namespace {

/// Rings, direct and halving-doubling: every place does the same in a step.
class AlikeScript final : public LineScript {
 public:
  AlikeScript(const PhaseShape& shape, const LineContext& context)
      : LineScript(Time::from_ps(context.endpoint_delay)),
        size_(context.axis.size),
        steps_(shape, size_, context.rules) {
    // A ring's steps after n - 1 are alike.
    const bool is_ring = shape.algorithm.kind == AlgorithmKind::ring;
    const std::uint64_t distinct = is_ring ? std::min<std::uint64_t>(steps_.count(), size_) : steps_.count();
    for (std::uint64_t k = 0; k < distinct; ++k)
      if (const Bytes reduced = steps_.at(k).reduced; reduction(reduced) == nullptr)
        reductions_.emplace_back(reduced, context.reduction(reduced));
  }

  std::uint32_t num_steps(std::uint32_t) const override { return static_cast<std::uint32_t>(steps_.count()); }

  Move move(std::uint32_t, std::uint32_t, std::uint32_t k) const override {
    const Step step = steps_.at(k);
    return {.message = step.message,
            .receives = step.count(),
            .cost = opening(),
            .reduction = Time::from_ps(*reduction(step.reduced))};
  }
  void receivers(std::uint32_t, std::uint32_t place, std::uint32_t k, std::vector<Receiver>& out) const override {
    const Step step = steps_.at(k);
    for (std::uint32_t d = step.first; d <= step.last; ++d)
      out.push_back({step.by_xor ? place ^ d : (place + d < size_ ? place + d : place + d - size_), k});
  }
  void senders(std::uint32_t, std::uint32_t place, std::uint32_t k, std::vector<std::uint32_t>& out) const override {
    const Step step = steps_.at(k);
    for (std::uint32_t d = step.first; d <= step.last; ++d)
      out.push_back(step.by_xor ? place ^ d : (place >= d ? place - d : place + size_ - d));
  }
  std::size_t memory() const override { return sizeof(*this) + reductions_.size() * sizeof(reductions_[0]); }

 private:
  const Ps* reduction(Bytes reduced) const {
    const auto found = std::ranges::find(reductions_, reduced, &std::pair<Bytes, Ps>::first);
    return found == reductions_.end() ? nullptr : &found->second;
  }

  std::uint32_t size_;
  Steps steps_;
  std::vector<std::pair<Bytes, Ps>> reductions_;  ///< by what is reduced
};

/// One of the two trees of a double binary tree, by place.
struct Tree {
  std::vector<std::uint32_t> parent;    ///< [places] the root's own for the root
  std::vector<std::uint32_t> children;  ///< of all places
  std::vector<std::uint32_t> first;     ///< [places + 1] into children

  Tree(std::uint32_t tree, std::uint32_t size) : parent(size), first(size + 1, 0) {
    for (std::uint32_t position = 0; position < size; ++position) {
      const std::uint32_t above = position == 0 ? 0 : tree_parent(position, size);
      const std::uint32_t up = tree_place(above, tree, size);
      parent[tree_place(position, tree, size)] = up;
      if (position != 0) ++first[up + 1];
    }
    for (std::uint32_t place = 0; place < size; ++place) first[place + 1] += first[place];
    children.resize(first[size]);
    std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
    for (std::uint32_t place = 0; place < size; ++place)
      if (!is_root(place)) children[next[parent[place]]++] = place;
  }
  bool is_root(std::uint32_t place) const { return parent[place] == place; }
  std::uint32_t num_children(std::uint32_t place) const { return first[place + 1] - first[place]; }
};

class DoubleBinaryTreeScript final : public LineScript {
 public:
  DoubleBinaryTreeScript(const PhaseShape& shape, const LineContext& context)
      : LineScript(Time::zero()),
        shape_(shape),
        rules_(context.rules),
        e_(Time::from_ps(context.endpoint_delay)),
        reduction_(Time::from_ps(context.reduction(shape.size))),
        trees_{Tree(0, context.axis.size), Tree(1, context.axis.size)} {}

  std::uint32_t num_steps(std::uint32_t) const override { return num_tree_steps; }

  Move move(std::uint32_t chunk, std::uint32_t place, std::uint32_t step) const override {
    const Tree& tree = trees_[chunk % 2];
    const TreeReductions pays = tree_reductions(shape_, tree.num_children(place), rules_);
    const auto pay = [&](std::uint64_t times) { return reduction_ * static_cast<std::int64_t>(times); };
    if (step == from_children)
      return {.message = shape_.size, .receives = tree.num_children(place), .cost = e_, .reduction = pay(pays.up)};
    if (step == to_children || tree.is_root(place)) return {.message = shape_.size};
    return {.message = shape_.size, .receives = 1, .cost = e_, .reduction = pay(pays.down)};
  }
  void receivers(std::uint32_t chunk, std::uint32_t place, std::uint32_t step,
                 std::vector<Receiver>& out) const override {
    const Tree& tree = trees_[chunk % 2];
    if (step == with_parent && !tree.is_root(place)) out.push_back({tree.parent[place], from_children});
    for (std::uint32_t c = tree.first[place]; step == to_children && c < tree.first[place + 1]; ++c)
      out.push_back({tree.children[c], with_parent});
  }
  void senders(std::uint32_t chunk, std::uint32_t place, std::uint32_t step,
               std::vector<std::uint32_t>& out) const override {
    const Tree& tree = trees_[chunk % 2];
    if (step == with_parent && !tree.is_root(place)) out.push_back(tree.parent[place]);
    for (std::uint32_t c = tree.first[place]; step == from_children && c < tree.first[place + 1]; ++c)
      out.push_back(tree.children[c]);
  }
  std::size_t memory() const override { return sizeof(*this) + 6 * trees_[0].parent.size() * sizeof(std::uint32_t); }

 private:
  /// Its children send to a place; it sends to its parent and waits for it; it sends to its children. The root has
  /// nobody to send to or wait for in the second.
  enum Step : std::uint32_t { from_children, with_parent, to_children, num_tree_steps };

  PhaseShape shape_;
  Rules rules_;
  Time e_;
  Time reduction_;
  std::array<Tree, 2> trees_;
};

/// The parent of place c is c without its lowest set bit 2^j: with its children, k = 0 .. j - 1, at c + 2^k. A place
/// sends one message at a time, and goes on when it is there.
class BinomialTreeScript final : public LineScript {
 public:
  BinomialTreeScript(const PhaseShape& shape, const LineContext& context)
      : LineScript(Time::from_ps(context.endpoint_delay)),
        size_(context.axis.size),
        message_(shape.size),
        goes_up_(shape.kind != Kind::broadcast),
        goes_down_(shape.kind != Kind::reduce),
        reduction_(Time::from_ps(shape.reduces ? context.reduction(shape.size) : 0)) {}

  std::uint32_t num_steps(std::uint32_t place) const override {
    const std::uint32_t of_a_way = num_children(place) + (place == 0 ? 0 : 1);
    return (goes_up_ ? of_a_way : 0) + (goes_down_ ? of_a_way : 0);
  }
  Move move(std::uint32_t, std::uint32_t place, std::uint32_t step) const override {
    const Meeting meeting = at(place, step);
    if (meeting.sends) return {.message = message_, .cost = opening(), .sends_one_by_one = true};
    return {.message = message_, .receives = 1, .cost = opening(), .reduction = meeting.is_up ? reduction_ : Time()};
  }
  void receivers(std::uint32_t, std::uint32_t place, std::uint32_t step, std::vector<Receiver>& out) const override {
    const Meeting meeting = at(place, step);
    if (!meeting.sends) return;
    const std::uint32_t to = meeting.other;
    // The parent waits for its children in their order; a child for its parent when it is through with the way up.
    const std::uint32_t down = goes_up_ ? num_children(to) + 1 : 0;
    out.push_back({to, meeting.is_up ? static_cast<std::uint32_t>(std::countr_zero(place)) : down});
  }
  void senders(std::uint32_t, std::uint32_t place, std::uint32_t step, std::vector<std::uint32_t>& out) const override {
    const Meeting meeting = at(place, step);
    if (!meeting.sends) out.push_back(meeting.other);
  }
  std::size_t memory() const override { return sizeof(*this); }

 private:
  struct Meeting {
    std::uint32_t other = 0;
    bool is_up = false;
    bool sends = false;
  };

  std::uint32_t num_children(std::uint32_t place) const {
    const auto fit = static_cast<std::uint32_t>(std::bit_width(size_ - 1 - place));  // 2^k <= size - 1 - place
    return place == 0 ? fit : std::min(fit, static_cast<std::uint32_t>(std::countr_zero(place)));
  }
  /// Up: from each child, to the parent. Down: from the parent, to each child, the last one first.
  Meeting at(std::uint32_t place, std::uint32_t step) const {
    const std::uint32_t children = num_children(place);
    const std::uint32_t parent = place & (place - 1);
    if (goes_up_) {
      if (step < children) return {place + (1U << step), true, false};
      step -= children;
      if (place != 0 && step == 0) return {parent, true, true};
      step -= place == 0 ? 0 : 1;
    }
    if (place != 0 && step == 0) return {parent, false, false};
    step -= place == 0 ? 0 : 1;
    return {place + (1U << (children - 1 - step)), false, true};
  }

  std::uint32_t size_;
  Bytes message_;
  bool goes_up_, goes_down_;
  Time reduction_;
};

/// Every place sends its part to the switch, which sends one message to each when all parts are there. With rendezvous
/// the places' words go that way first.
class InSwitchScript final : public LineScript {
 public:
  InSwitchScript(const PhaseShape& shape, const LineContext& context)
      : LineScript(Time::from_ps(context.endpoint_delay)),
        size_(context.axis.size),
        load_(in_switch_load(shape, size_)),
        words_(context.rendezvous ? 1 : 0) {}

  std::uint32_t num_steps(std::uint32_t) const override { return words_ + 1; }
  Move move(std::uint32_t, std::uint32_t place, std::uint32_t step) const override {
    if (step < words_)
      return {.message = control_message, .receives = 1, .from_switch = control_message, .is_word = true};
    return {.message = place < load_.senders ? load_.up : Bytes(0),
            .receives = 1,
            .cost = opening(),
            .from_switch = load_.down};
  }
  void receivers(std::uint32_t, std::uint32_t, std::uint32_t step, std::vector<Receiver>& out) const override {
    for (std::uint32_t place = 0; place < size_; ++place) out.push_back({place, step});
  }
  void senders(std::uint32_t, std::uint32_t, std::uint32_t, std::vector<std::uint32_t>&) const override {}
  std::size_t memory() const override { return sizeof(*this); }

 private:
  std::uint32_t size_;
  InSwitchLoad load_;
  std::uint32_t words_;
};

}  // namespace

std::unique_ptr<LineScript> make_line_script(const PhaseShape& shape, const LineContext& context) {
  switch (shape.algorithm.kind) {
    case AlgorithmKind::ring:
    case AlgorithmKind::direct:
    case AlgorithmKind::halving_doubling:
      return std::make_unique<AlikeScript>(shape, context);
    case AlgorithmKind::double_binary_tree:
      return std::make_unique<DoubleBinaryTreeScript>(shape, context);
    case AlgorithmKind::binomial_tree:
      return std::make_unique<BinomialTreeScript>(shape, context);
    case AlgorithmKind::in_switch:
      return std::make_unique<InSwitchScript>(shape, context);
    case AlgorithmKind::custom:
      return make_procedure_script(shape, context);
  }
  ensure_failed("an unknown algorithm", std::source_location::current());
}

}  // namespace orrery::collective
