#include <algorithm>
#include <functional>

#include "link_loads.hpp"
#include "rounds.hpp"

namespace orrery::collective {
namespace {

// A ring of n positions takes K steps, K >= n - 1:
//
//   next[i] = max(s[i-1] + L_i, s[i] + c_i) + e + p_k         L_i: delay of the edge into i
//
// with c_i = 0, or with rendezvous c_i = D_i + L_i (the clear to send, then the data). Unrolled over all steps, the
// finish of i is the longest of the paths of K steps that end in i. Each step is a move along an edge or a stay. Every
// path also pays the sum of all e + p_k. So no step has to be taken one by one:
//
// - All c_i = c, and all L_i >= c or all L_i <= c (no rendezvous, or all edges alike). A path's length is K c plus
//   w_i = L_i - c for each move. Of the paths from j to i, the moves are congruent to the distance modulo n; if w >= 0
//   the longest has the most moves that fit, K - n + 1 .. K, else the fewest, 0 .. n - 1. Either way each j has exactly
//   one number of moves, n in a row over all j; `extra` moves before them are common to all. The maximum over all j is
//   one suffix and one prefix maximum: O(n), whatever K.
// - Rendezvous over edges that differ. c_i > L_i for every edge: stays at the worst position are worth more than a
//   round, but one round may be needed to reach that position. So from j: walk on, and stay at the worst position seen;
//   or go round once more and stay at the worst of all. O(n^2).

struct Edges {
  std::vector<Ps> move;  ///< L_i; one value if all are alike
  std::vector<Ps> stay;  ///< c_i; one value if all are alike
};

class RingClosedForm final : public GroupEvaluator {
 public:
  RingClosedForm(std::uint32_t size, std::uint64_t num_steps, Ps fixed, Edges edges)
      : size_(size), num_steps_(num_steps), fixed_(fixed), edges_(std::move(edges)) {
    uniform_ = edges_.move.size() == 1;
    uniform_stay_ = edges_.stay.size() == 1;
    const Ps bound = std::max(*std::ranges::max_element(edges_.move), *std::ranges::max_element(edges_.stay));
    duration_ = plus(fixed_, times(bound, num_steps_));
    (void)times(bound, size_);  // `run` goes a whole round, whatever the number of steps
    if (uniform_) return;
    if (uniform_stay_) set_prefix();
    const std::vector<Ps> finishes = finishes_from_zero(*this, size_);
    duration_ = std::ranges::max(finishes);
    finishes_together_ = std::ranges::min(finishes) == duration_;
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }

  std::size_t memory() const override {
    return sizeof(*this) + (edges_.move.size() + edges_.stay.size() + prefix_.size()) * sizeof(Ps);
  }

  void run(std::span<Ps> times, Scratch& scratch) const override {
    scratch.first.resize(size_);
    scratch.second.resize(size_);
    for (std::size_t at = 0; at < times.size(); at += size_) {
      Ps* group = times.data() + at;
      if (uniform_) {
        const Ps weight = edges_.move[0] - edges_.stay[0];
        run_group(group, scratch, [weight](std::size_t i) { return weight * static_cast<Ps>(i); });
      } else if (uniform_stay_) {
        run_group(group, scratch, [this](std::size_t i) { return prefix_[i]; });
      } else {
        run_staying(group, scratch);
      }
    }
  }

 private:
  void set_prefix() {
    prefix_.resize(size_ + 1);
    for (std::size_t i = 1; i <= size_; ++i) prefix_[i] = prefix_[i - 1] + edges_.move[i % size_] - edges_.stay[0];
  }

  /// prefix(i): weight of the moves from position 0 to position i; prefix(n): of a whole round.
  template <class Prefix>
  void run_group(Ps* group, Scratch& scratch, Prefix prefix) const {
    const std::size_t n = size_;
    const Ps round = prefix(n);
    Ps* later =
        scratch.first.data();  // later[i]: best of the positions i .. n - 1, as seen from position 0 of the next round
    Ps* best = scratch.second.data();
    later[n - 1] = group[n - 1] - prefix(n - 1) + round;
    for (std::size_t i = n - 1; i-- > 1;) later[i] = std::max(later[i + 1], group[i] - prefix(i) + round);
    Ps before = group[0] - prefix(0);
    for (std::size_t i = 0; i + 1 < n; ++i) {
      before = std::max(before, group[i] - prefix(i));
      best[i] = std::max(later[i + 1], before) + prefix(i);
    }
    best[n - 1] = std::max(before, group[n - 1] - prefix(n - 1)) + prefix(n - 1);
    const std::uint64_t extra = round >= 0 ? num_steps_ - (n - 1) : 0;
    const std::size_t shift = extra % n;
    const Ps common = fixed_ + edges_.stay[0] * static_cast<Ps>(num_steps_) + round * static_cast<Ps>(extra / n);
    for (std::size_t i = 0; i < shift; ++i)
      group[i] = best[i + n - shift] + (common + prefix(i) - prefix(i + n - shift) + round);
    for (std::size_t i = shift; i < n; ++i) group[i] = best[i - shift] + (common + prefix(i) - prefix(i - shift));
  }

  void run_staying(Ps* group, Scratch& scratch) const {
    const std::size_t n = size_;
    Ps round = 0;
    Ps worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      round += edges_.move[i];
      worst = std::max(worst, edges_.stay[i]);
    }
    Ps* out = scratch.second.data();
    std::fill(out, out + n, std::numeric_limits<Ps>::min());
    for (std::size_t from = 0; from < n; ++from) {
      Ps length = group[from];
      Ps stay = edges_.stay[from];
      std::size_t i = from;
      for (std::uint64_t moves = 0; moves < n; ++moves) {
        out[i] = std::max(out[i], length + stay * static_cast<Ps>(num_steps_ - moves));
        if (num_steps_ >= moves + n)
          out[i] = std::max(out[i], length + round + worst * static_cast<Ps>(num_steps_ - moves - n));
        i = i + 1 == n ? 0 : i + 1;
        length += edges_.move[i];
        stay = std::max(stay, edges_.stay[i]);
      }
    }
    for (std::size_t i = 0; i < n; ++i) group[i] = out[i] + fixed_;
  }

  std::uint32_t size_;
  std::uint64_t num_steps_;
  Ps fixed_;  ///< endpoint delays and reductions of all steps
  Edges edges_;
  std::vector<Ps> prefix_;
  bool uniform_ = false;  ///< all edges are alike
  bool finishes_together_ = true;
  bool uniform_stay_ = true;
  Ps duration_ = 0;
};

void collapse(std::vector<Ps>& values) {
  if (std::ranges::adjacent_find(values, std::not_equal_to<>{}) == values.end()) values.resize(1);
}

Edges edges_of(const GroupContext& context, Bytes message) {
  Edges edges;
  const std::uint32_t n = context.axis.size;
  // Neighbours in the natural order of a circulant group all have one delay; else every edge is asked for.
  const bool meets_alike = context.loads == nullptr || context.loads->is_uniform();
  const std::uint32_t num_edges = context.is_circulant() && meets_alike ? 1 : n;
  for (std::uint32_t i = 0; i < num_edges; ++i) {
    const std::uint32_t before = i == 0 ? n - 1 : i - 1;
    const Ps move = context.link(before, i, message);
    edges.move.push_back(move);
    edges.stay.push_back(context.rendezvous ? plus(move, context.clear_to_send(before, i)) : 0);
  }
  collapse(edges.stay);
  if (edges.stay.size() == 1) collapse(edges.move);
  return edges;
}

/// Every position sends a block to the next one in every step. A reduce-scatter adds up each block on its way round, an
/// all-gather sends each block round, an all-reduce does both. In an all-to-all the blocks for the position at distance
/// d go d steps, one distance after the other.
class Ring final : public RoundAlgorithm {
 public:
  explicit Ring(const GroupTask& task) : RoundAlgorithm(task, rounds_of(task)) {}

  BlocksOfMessage blocks(std::uint32_t position, std::uint64_t k, std::uint32_t) const override {
    const std::uint32_t n = task().size;
    if (task().kind == Kind::all_to_all) {
      std::uint32_t distance = 1;
      for (; k >= distance; ++distance) k -= distance;
      const std::uint32_t source = at(position, n - k);
      return {{source * n + at(source, distance)}, false};
    }
    const bool adds = task().scatters() && k + 1 < n;
    if (task().scatters() && !adds) k -= n - 1;
    return {{at(position, 2 * n - k - (adds ? 1 : 0))}, adds};
  }

  std::unique_ptr<GroupEvaluator> closed_form(const GroupContext& context) const override {
    Ps fixed = times(context.endpoint_delay, num_steps() + 1);
    for (const Round& round : rounds())
      if (round.reduced > Bytes(0)) fixed = plus(fixed, times(context.reduction(round.reduced), round.count));
    return std::make_unique<RingClosedForm>(task().size, num_steps(), fixed,
                                            edges_of(with_loads(context, rounds()[0]), rounds()[0].bytes));
  }

 private:
  static std::vector<Round> rounds_of(const GroupTask& task) {
    const std::uint64_t n = task.size;
    const Bytes block = task.block();
    if (task.kind == Kind::all_to_all) return {{.count = n * (n - 1) / 2, .bytes = block}};
    std::vector<Round> rounds;
    if (task.scatters()) rounds.push_back({.count = n - 1, .bytes = block, .reduced = task.reduces ? block : Bytes(0)});
    if (task.gathers()) rounds.push_back({.count = n - 1, .bytes = block});
    return rounds;
  }
};

}  // namespace

std::unique_ptr<const SteppedAlgorithm> make_ring(const GroupTask& task) { return std::make_unique<Ring>(task); }

}  // namespace orrery::collective
