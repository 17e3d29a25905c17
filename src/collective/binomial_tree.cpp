#include <algorithm>
#include <bit>

#include "algorithm.hpp"

namespace orrery::collective {
namespace {

/// The parent of position i is i without its lowest set bit 2^j; its children are at i + 2^k, k = 0, 1, ..., j - 1. The
/// root is position 0. On the way up a position receives from its children, the nearest first, and sends to its parent.
/// On the way down it receives from its parent and sends to its children, the farthest first. It sends one message at a
/// time: a step that sends lasts until the message has been delivered. An all-reduce goes up and down, a reduce up, a
/// broadcast down.
class BinomialTree final : public SteppedAlgorithm {
 public:
  explicit BinomialTree(const GroupTask& task) : SteppedAlgorithm(task) {}

  std::uint64_t num_steps(std::uint32_t position) const override {
    return (goes_up() ? steps_of_one_way(position) : 0) + (goes_down() ? steps_of_one_way(position) : 0);
  }
  BlocksOfMessage blocks(std::uint32_t position, std::uint64_t k, std::uint32_t) const override {
    return all_blocks(task().size, is_up(position, k));
  }

 private:
  bool goes_up() const { return task().kind != Kind::broadcast; }
  bool goes_down() const { return task().kind != Kind::reduce; }
  bool is_up(std::uint32_t position, std::uint64_t k) const { return goes_up() && k < steps_of_one_way(position); }
  static std::uint32_t parent(std::uint32_t position) { return position & (position - 1); }
  std::uint32_t num_children(std::uint32_t position) const {
    const auto fit = static_cast<std::uint32_t>(std::bit_width(task().size - 1 - position));  // 2^k <= n - 1 - i
    return position == 0 ? fit : std::min(fit, static_cast<std::uint32_t>(std::countr_zero(position)));
  }
  std::uint32_t steps_of_one_way(std::uint32_t position) const {
    return num_children(position) + (position == 0 ? 0 : 1);
  }

  void fill(std::uint32_t position, std::uint64_t k, Step& out) const override {
    const std::uint32_t children = num_children(position);
    out.bytes = task().bytes;
    if (is_up(position, k)) {
      if (k < children)
        receive(position + (1U << k), true, out);
      else
        send({parent(position), static_cast<std::uint32_t>(std::countr_zero(position))}, out);
      return;
    }
    const std::uint64_t way_down = k - (goes_up() ? steps_of_one_way(position) : 0);
    const std::uint64_t from_parent = position == 0 ? 0 : 1;
    if (way_down < from_parent) return receive(parent(position), false, out);
    const std::uint32_t child = position + (1U << (children - 1 - (way_down - from_parent)));
    send({child, goes_up() ? steps_of_one_way(child) : 0}, out);
  }

  static void send(Receiver to, Step& out) {
    out.sends.push_back(to);
    out.awaits_delivery = true;
  }
  void receive(std::uint32_t from, bool reduces, Step& out) const {
    out.receives.push_back(from);
    if (!reduces || !task().reduces) return;
    out.reduced = task().bytes;
    out.num_reductions = 1;
  }
};

}  // namespace

std::unique_ptr<const SteppedAlgorithm> make_binomial_tree(const GroupTask& task) {
  return std::make_unique<BinomialTree>(task);
}

}  // namespace orrery::collective
