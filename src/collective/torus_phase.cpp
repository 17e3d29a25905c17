#include "torus_phase.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::collective {
namespace {

constexpr std::size_t most_balanced = 10;  // sides, of whose subsets all are looked at

/// Returns the bandwidth with which the bytes of a position leave over one side: of both links of a ring, if it has
/// both directions. In a row the busiest link carries what a position sends.
double capacity(const TorusSide& side, bool both_directions) {
  return side.bandwidth * (both_directions && !side.is_row() ? 2 : 1);
}

/// The bytes that a position sends over each side in a reduce-scatter of one byte. Whatever the orders are in which
/// parts take the sides, the sides of a set J carry 1 / (product of the other sizes) - 1 / (product of all sizes) at
/// the least: this is so if all parts take them last. There are orders for all bytes that keep these bounds (a
/// polymatroid).
class BalancedBytes {
 public:
  BalancedBytes(std::span<const TorusSide> sides, bool both_directions)
      : sides_(sides), both_directions_(both_directions), bytes_(sides.size()) {
    const std::uint32_t all = (1U << std::min(sides.size(), most_balanced)) - 1U;
    if (sides.size() <= most_balanced)
      balance(all);
    else
      divide_evenly();
  }

  const std::vector<double>& bytes() const { return bytes_; }

 private:
  template <class Visit>
  void for_each_side(std::uint32_t set, Visit visit) const {
    for (std::uint32_t s = 0; s < sides_.size(); ++s)
      if ((set >> s & 1U) != 0) visit(s);
  }
  double product(std::uint32_t set) const {
    double product = 1;
    for_each_side(set, [&](std::uint32_t s) { product *= sides_[s].size; });
    return product;
  }
  double capacity_of(std::uint32_t set) const {
    double sum = 0;
    for_each_side(set, [&](std::uint32_t s) { sum += capacity(sides_[s], both_directions_); });
    return sum;
  }
  /// The set that takes longest decides; the other sides balance what is left for them.
  void balance(std::uint32_t all) {
    while (all != 0) {
      double longest = -1;
      std::uint32_t slowest = all;
      for (std::uint32_t set = all; set != 0; set = (set - 1) & all) {
        const double takes = (1 / product(all & ~set) - 1 / product(all)) / capacity_of(set);
        if (takes > longest * (1 + 1e-12)) {
          longest = takes;
          slowest = set;
        }
      }
      for_each_side(slowest, [&](std::uint32_t s) { bytes_[s] = longest * capacity(sides_[s], both_directions_); });
      all &= ~slowest;
    }
  }
  void divide_evenly() {
    double positions = 1, sum = 0;
    for (const TorusSide& side : sides_) {
      positions *= side.size;
      sum += capacity(side, both_directions_);
    }
    for (std::size_t s = 0; s < sides_.size(); ++s)
      bytes_[s] = (1 - 1 / positions) * capacity(sides_[s], both_directions_) / sum;
  }

  std::span<const TorusSide> sides_;
  bool both_directions_;
  std::vector<double> bytes_;
};

/// Returns the bytes over the busiest link of a side in an all-to-all of one byte for all others together.
double exchanged(const TorusSide& side, bool both_directions) {
  const double n = side.size, half = std::floor(n / 2);
  if (side.is_row()) return half * (n - half) / n;
  if (!both_directions) return (n - 1) / 2;
  return half * (n - half) / (2 * n);
}

/// What one position and its neighbours are to each other. Positions are numbered by side, the first fastest.
class Neighbours {
 public:
  Neighbours(std::span<const TorusSide> sides, bool both_directions)
      : sides_(sides), both_directions_(both_directions) {
    std::uint32_t stride = 1;
    for (const TorusSide& side : sides) {
      strides_.push_back(stride);
      stride *= side.size;
    }
  }

  /// Returns position 0 and those that differ from it along one side.
  std::vector<std::uint32_t> along_sides() const {
    std::vector<std::uint32_t> positions{0};
    for (std::uint32_t s = 0; s < sides_.size(); ++s)
      for (std::uint32_t i = 1; i < sides_[s].size; ++i) positions.push_back(i * strides_[s]);
    return positions;
  }
  /// Calls visit(neighbour, side) for those that a position sends to.
  template <class Visit>
  void for_each_receiver(std::uint32_t position, Visit visit) const {
    for (std::uint32_t s = 0; s < sides_.size(); ++s) {
      if (has_next(position, s)) visit(next(position, s), s);
      if (goes_back(s) && has_previous(position, s)) visit(previous(position, s), s);
    }
  }
  /// Calls visit(neighbour, side) for those that a position receives from.
  template <class Visit>
  void for_each_sender(std::uint32_t position, Visit visit) const {
    for (std::uint32_t s = 0; s < sides_.size(); ++s) {
      if (has_previous(position, s)) visit(previous(position, s), s);
      if (goes_back(s) && has_next(position, s)) visit(next(position, s), s);
    }
  }

 private:
  bool goes_back(std::uint32_t s) const { return both_directions_ || sides_[s].is_row(); }
  std::uint32_t along(std::uint32_t position, std::uint32_t s) const { return position / strides_[s] % sides_[s].size; }
  bool has_next(std::uint32_t position, std::uint32_t s) const { return along(position, s) != sides_[s].end; }
  bool has_previous(std::uint32_t position, std::uint32_t s) const { return has_next(previous(position, s), s); }
  std::uint32_t next(std::uint32_t position, std::uint32_t s) const {
    const bool wraps = along(position, s) + 1 == sides_[s].size;
    return wraps ? position - (sides_[s].size - 1) * strides_[s] : position + strides_[s];
  }
  std::uint32_t previous(std::uint32_t position, std::uint32_t s) const {
    const bool wraps = along(position, s) == 0;
    return wraps ? position + (sides_[s].size - 1) * strides_[s] : position - strides_[s];
  }

  std::span<const TorusSide> sides_;
  bool both_directions_;
  std::vector<std::uint32_t> strides_;
};

/// The steps that all positions take.
struct TorusSteps {
  std::uint32_t count = 0;      ///< number of all steps
  std::uint32_t reducing = 0;   ///< the first ones, at whose end a position reduces what it has got
  std::vector<Bytes> messages;  ///< [sides] to each neighbour in each step
  Bytes reduced;                ///< bytes in each reducing step
};

/// The finishes of positions after steps in which each waits for its neighbours:
///
///   next[i] = max(s[i], max over neighbours j of max(s[j], s[i] + clear) + move) + e + reduction
class TorusEvaluator final : public GroupEvaluator {
 public:
  TorusEvaluator(const Axis& axis, Neighbours neighbours, const TorusSteps& steps, GroupContext context)
      : size_(axis.size), neighbours_(std::move(neighbours)), steps_(steps), endpoint_delay_(context.endpoint_delay) {
    reduction_ = steps.reduced > Bytes(0) ? context.reduction(steps.reduced) : 0;
    context.at_once = 2;
    // Where links are alike, those along the sides from position 0 stand for all.
    if (context.is_regular()) add_edges(neighbours_.along_sides(), context);
    if (!is_uniform_ || edges_.empty()) {
      edges_.clear();
      std::vector<std::uint32_t> all(size_);
      std::iota(all.begin(), all.end(), 0U);
      add_edges(all, context);
    }
    for (const Edge& edge : edges_) longest_ = std::max(longest_, plus(edge.move, edge.clear));
    if (is_uniform_) {
      edges_.clear();
      duration_ = rest(0);
    } else {
      const std::vector<Ps> finishes = finishes_from_zero(*this, size_);
      duration_ = std::ranges::max(finishes);
      finishes_together_ = std::ranges::min(finishes) == duration_;
    }
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }
  std::size_t memory() const override { return sizeof(*this) + edges_.size() * sizeof(Edge); }

  void run(std::span<Ps> times, Scratch& scratch) const override {
    for (std::size_t at = 0; at < times.size(); at += size_) run_group(times.subspan(at, size_), scratch);
  }

 private:
  struct Edge {
    Ps move = 0, clear = 0;
  };

  void add_edges(std::span<const std::uint32_t> receivers, const GroupContext& context) {
    for (const std::uint32_t i : receivers)
      neighbours_.for_each_sender(i, [&](std::uint32_t j, std::uint32_t side) {
        edges_.push_back({context.link(j, i, steps_.messages[side]), context.clear_to_send(j, i)});
        const Edge& of_side = edge_of_side(side);
        is_uniform_ = is_uniform_ && edges_.back().move == of_side.move && edges_.back().clear == of_side.clear;
      });
  }
  /// Returns the edge of a side, which is that of its first message.
  Edge& edge_of_side(std::uint32_t side) {
    if (of_side_.size() <= side) of_side_.resize(side + 1);
    if (!of_side_[side]) of_side_[side] = edges_.back();
    return *of_side_[side];
  }
  Ps cost(std::uint32_t step) const { return plus(endpoint_delay_, step < steps_.reducing ? reduction_ : 0); }
  /// Returns what the steps from one on take positions that begin it together, with the delay before the first.
  Ps rest(std::uint32_t step) const {
    Ps sum = step == 0 ? endpoint_delay_ : 0;
    const std::uint32_t reducing = std::max(step, steps_.reducing) - step;
    sum = plus(sum, times(plus(longest_, endpoint_delay_), steps_.count - step));
    return plus(sum, times(reduction_, reducing));
  }

  void run_group(std::span<Ps> group, Scratch& scratch) const {
    for (Ps& time : group) time += endpoint_delay_;
    std::vector<Ps>& before = scratch.first;
    for (std::uint32_t step = 0; step < steps_.count; ++step) {
      const auto [first, last] = std::ranges::minmax(group);
      if (is_uniform_ && first == last) {
        const Ps left = rest(step) - (step == 0 ? endpoint_delay_ : 0);
        for (Ps& time : group) time += left;
        return;
      }
      before.assign(group.begin(), group.end());
      std::size_t number = 0;
      for (std::uint32_t i = 0; i < size_; ++i) {
        Ps latest = before[i];
        neighbours_.for_each_sender(i, [&](std::uint32_t j, std::uint32_t side) {
          const Edge& edge = is_uniform_ ? *of_side_[side] : edges_[number++];
          latest = std::max(latest, std::max(before[j], edge.clear > 0 ? before[i] + edge.clear : 0) + edge.move);
        });
        group[i] = latest + cost(step);
      }
    }
  }

  std::uint32_t size_;
  Neighbours neighbours_;
  TorusSteps steps_;
  Ps endpoint_delay_, reduction_ = 0;
  std::vector<Edge> edges_;                   ///< edges by receiver, in the order of its senders; empty if uniform
  std::vector<std::optional<Edge>> of_side_;  ///< if uniform
  bool is_uniform_ = true, finishes_together_ = true;
  Ps longest_ = 0, duration_ = 0;
};

class TorusProgram final : public PositionProgram {
 public:
  TorusProgram(Neighbours neighbours, TorusSteps steps, const GroupContext& context)
      : PositionProgram(Time::from_ps(context.endpoint_delay)),
        neighbours_(std::move(neighbours)),
        steps_(std::move(steps)),
        endpoint_delay_(Time::from_ps(context.endpoint_delay)),
        reduction_(Time::from_ps(steps_.reduced > Bytes(0) ? context.reduction(steps_.reduced) : 0)) {}

  std::uint32_t num_steps(std::uint32_t) const override { return steps_.count; }
  void step(std::uint32_t position, std::uint32_t k, MemberStep& out) const override {
    out.step.reset();
    out.is_clear_to_send = false;
    neighbours_.for_each_receiver(position, [&](std::uint32_t to, std::uint32_t side) {
      out.step.sends.push_back({to, k});
      out.step.sizes.push_back(steps_.messages[side]);
    });
    neighbours_.for_each_sender(position,
                                [&](std::uint32_t from, std::uint32_t) { out.step.receives.push_back(from); });
    const bool reduces = k < steps_.reducing && steps_.reduced > Bytes(0);
    out.step.num_reductions = reduces ? 1 : 0;
    out.step.reduced = reduces ? steps_.reduced : Bytes(0);
    out.cost = endpoint_delay_;
    out.reduction = reduces ? reduction_ : Time::zero();
  }
  std::size_t memory() const override { return sizeof(*this); }

 private:
  Neighbours neighbours_;
  TorusSteps steps_;
  Time endpoint_delay_, reduction_;
};

class TorusPhase final : public PhaseAlgorithm {
 public:
  explicit TorusPhase(const PhaseShape& shape)
      : axis_(*shape.torus), neighbours_(axis_.torus, shape.both_directions), has_both_(shape.both_directions) {
    const bool is_reduced = shape.reduces && (shape.kind == Kind::all_reduce || shape.kind == Kind::reduce_scatter);
    const std::uint32_t times = shape.kind == Kind::all_reduce ? 2 : 1;
    std::uint32_t steps = 0;
    for (const TorusSide& side : axis_.torus) steps += has_both_ && !side.is_row() ? side.size / 2 : side.size - 1;
    const double full = static_cast<double>(shape.size.count()) * (shape.kind == Kind::all_gather ? axis_.size : 1);
    for (const double load : loads_of_torus(axis_.torus, shape.kind, full, has_both_))
      steps_.messages.emplace_back(static_cast<std::uint64_t>(std::ceil(load / steps - 1e-6)));
    steps_.count = steps * times;
    if (!is_reduced) return;
    steps_.reducing = steps;
    steps_.reduced = Bytes(static_cast<std::uint64_t>(full * (1 - 1.0 / axis_.size) / steps));
  }

  std::unique_ptr<GroupEvaluator> evaluator(const GroupContext& context) const override {
    return std::make_unique<TorusEvaluator>(axis_, neighbours_, steps_, context);
  }
  std::unique_ptr<PositionProgram> program(const GroupContext& context) const override {
    return std::make_unique<TorusProgram>(neighbours_, steps_, context);
  }
  void count_bytes(std::uint64_t chunks, SentBytes& sent) const override {
    for (std::uint32_t i = 0; i < axis_.size; ++i)
      neighbours_.for_each_receiver(i, [&](std::uint32_t to, std::uint32_t side) {
        sent.add(i, to, SentBytes::Wide{steps_.count} * chunks, steps_.messages[side]);
      });
  }
  /// A position waits for its neighbours in each step, so that every path passes all steps.
  std::uint64_t fewest_endpoint_delays() const override { return std::uint64_t{steps_.count} + 1; }
  Symmetry symmetry() const override {
    const bool turns = axis_.torus.size() == 1 && (!axis_.torus[0].is_row() || axis_.size == 2);
    return {.rotation = turns, .exchange = axis_.size == 2};
  }
  std::uint64_t depth() const override { return steps_.count; }

 private:
  const Axis& axis_;
  Neighbours neighbours_;
  bool has_both_;
  TorusSteps steps_;
};

}  // namespace

std::vector<double> loads_of_torus(std::span<const TorusSide> sides, Kind kind, double full, bool both_directions) {
  std::vector<double> loads;
  if (kind == Kind::all_to_all) {
    for (const TorusSide& side : sides) loads.push_back(full * exchanged(side, both_directions));
    return loads;
  }
  const BalancedBytes balanced(sides, both_directions);
  for (std::size_t s = 0; s < sides.size(); ++s)
    loads.push_back(full * balanced.bytes()[s] * sides[s].bandwidth / capacity(sides[s], both_directions));
  return loads;
}

std::shared_ptr<const PhaseAlgorithm> make_torus_phase(const PhaseShape& shape) {
  return std::make_shared<TorusPhase>(shape);
}

}  // namespace orrery::collective
