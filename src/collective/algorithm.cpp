#include "algorithm.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <tuple>
#include <utility>

#include "custom_phase.hpp"
#include "orrery/collective/registry.hpp"
#include "torus_phase.hpp"

namespace orrery::collective {
namespace {

/// The steps of an algorithm as members carry them out. With rendezvous, before each step through the switch there is
/// one more, in which the clears to send go through the switch.
class ProgramOfSteps final : public PositionProgram {
 public:
  ProgramOfSteps(std::shared_ptr<const SteppedAlgorithm> algorithm, const GroupContext& context, Time opening)
      : PositionProgram(opening), algorithm_(std::move(algorithm)), context_(context) {
    Step first;
    algorithm_->step(0, 0, first);
    is_in_switch_ = first.through_switch.has_value();
    clears_in_switch_ = is_in_switch_ && context.rendezvous;
  }

  const SlidingWindow* sliding_window() const override { return algorithm_->sliding_window(); }

  std::uint32_t num_steps(std::uint32_t position) const override {
    return static_cast<std::uint32_t>(algorithm_->num_steps(position)) * (clears_in_switch_ ? 2 : 1);
  }

  void step(std::uint32_t position, std::uint32_t k, MemberStep& out) const override {
    algorithm_->step(position, clears_in_switch_ ? k / 2 : k, out.step);
    out.is_clear_to_send = clears_in_switch_ && k % 2 == 0;
    for (std::uint32_t to = 0; is_in_switch_ && to < algorithm_->task().size; ++to) out.step.sends.push_back({to, k});
    out.cost = out.reduction = Time::zero();
    if (out.is_clear_to_send) {
      out.step.bytes = clear_to_send_bytes;
      out.step.through_switch = {clear_to_send_bytes, clear_to_send_bytes};
      return;
    }
    if (out.step.pays_endpoint_delay) out.cost = Time::from_ps(context_.endpoint_delay);
    if (out.step.num_reductions > 0)
      out.reduction = Time::from_ps(context_.reduction(out.step.reduced)) * out.step.num_reductions;
  }

  std::size_t memory() const override { return sizeof(*this) + algorithm_->memory(); }

 private:
  std::shared_ptr<const SteppedAlgorithm> algorithm_;
  GroupContext context_;
  bool is_in_switch_ = false;
  bool clears_in_switch_ = false;
};

/// Returns whether the times of step k are those of step k of another position once all positions are renumbered.
class Renumbering {
 public:
  explicit Renumbering(const SteppedAlgorithm& algorithm) : algorithm_(algorithm) {}

  /// `map`: the new number of each position.
  template <class Map>
  bool keeps_steps(Map map) {
    for (std::uint32_t i = 0; i < algorithm_.task().size; ++i) {
      if (algorithm_.num_steps(i) != algorithm_.num_steps(map(i))) return false;
      for (std::uint64_t k = 0; k < algorithm_.num_steps(i); ++k) {
        algorithm_.step(i, k, step_);
        algorithm_.step(map(i), k, other_);
        for (Receiver& to : step_.sends) to.member = map(to.member);
        for (std::uint32_t& from : step_.receives) from = map(from);
        if (!is_alike(step_, other_)) return false;
      }
    }
    return true;
  }

 private:
  static bool is_alike(Step& a, Step& b) {
    for (Step* const step : {&a, &b}) {
      std::ranges::sort(step->sends, {}, [](const Receiver& to) { return std::tie(to.member, to.step); });
      std::ranges::sort(step->receives);
      // The longest of all that goes through the switch counts, whoever sends it.
      if (step->through_switch) step->bytes = step->through_switch->up;
    }
    const auto down = [](const Step& step) { return step.through_switch ? step.through_switch->down : Bytes(0); };
    const auto same = [](const Receiver& x, const Receiver& y) { return x.member == y.member && x.step == y.step; };
    return std::tie(a.bytes, a.reduced, a.num_reductions, a.pays_endpoint_delay, a.awaits_delivery) ==
               std::tie(b.bytes, b.reduced, b.num_reductions, b.pays_endpoint_delay, b.awaits_delivery) &&
           down(a) == down(b) && a.receives == b.receives && std::ranges::equal(a.sends, b.sends, same);
  }

  const SteppedAlgorithm& algorithm_;
  Step step_, other_;
};

}  // namespace

BlocksOfMessage all_blocks(std::uint32_t size, bool adds) {
  BlocksOfMessage message{std::vector<std::uint32_t>(size), adds};
  std::iota(message.blocks.begin(), message.blocks.end(), 0U);
  return message;
}

std::unique_ptr<GroupEvaluator> SteppedAlgorithm::evaluator(const GroupContext& context) const {
  if (auto closed = closed_form(context)) return closed;
  const bool has_root = task_.kind == Kind::broadcast || task_.kind == Kind::reduce;
  if (has_root) return after_all_have_begun(evaluate(context), task_.size, context.endpoint_delay);
  return evaluate(context);
}

std::unique_ptr<PositionProgram> SteppedAlgorithm::program(const GroupContext& context) const {
  const Time opening = Time::from_ps(begins_with_endpoint_delay() ? context.endpoint_delay : 0);
  return std::make_unique<ProgramOfSteps>(std::static_pointer_cast<const SteppedAlgorithm>(shared_from_this()), context,
                                          opening);
}

void SteppedAlgorithm::count_bytes(std::uint64_t chunks, SentBytes& sent) const {
  Step step;
  for (std::uint32_t i = 0; i < task_.size; ++i)
    for (std::uint64_t k = 0; k < num_steps(i); ++k) {
      this->step(i, k, step);
      if (step.through_switch) sent.add(i, i == 0 ? 1 : 0, chunks, step.bytes);  // one dimension joins any two
      for (const Receiver& to : step.sends) sent.add(i, to.member, chunks, step.bytes);
    }
}

Symmetry SteppedAlgorithm::symmetry() const {
  const std::uint32_t n = task_.size;
  Renumbering renumbering(*this);
  Symmetry symmetry{.rotation = renumbering.keeps_steps([n](std::uint32_t i) { return i + 1 == n ? 0 : i + 1; }),
                    .exchange = std::has_single_bit(n)};
  for (std::uint32_t bit = 1; symmetry.exchange && bit < n; bit *= 2)
    symmetry.exchange = renumbering.keeps_steps([bit](std::uint32_t i) { return i ^ bit; });
  return symmetry;
}

std::uint64_t SteppedAlgorithm::depth() const {
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < task_.size; ++i) most = std::max(most, num_steps(i));
  return most;
}

ForChunks<std::shared_ptr<const PhaseAlgorithm>> make_algorithms(const PhaseShape& shape, std::uint32_t size,
                                                                 const Rules& rules) {
  if (shape.is_custom) return {make_custom_phase(shape, size, rules)};
  if (shape.torus != nullptr) return {make_torus_phase(shape)};
  const AlgorithmEntry& entry = entry_of(shape.algorithm);
  const auto make = [&](bool is_odd_chunk) -> std::shared_ptr<const PhaseAlgorithm> {
    return entry.make({.kind = shape.kind,
                       .reduces = shape.reduces,
                       .size = size,
                       .bytes = shape.size,
                       .window = shape.algorithm.window,
                       .is_odd_chunk = is_odd_chunk,
                       .reduces_every_message = rules.reduce_every_message,
                       .slides = rules.sliding_windows,
                       .in_subgroup = shape.in_subgroup});
  };
  if (!entry.differs_for_odd_chunks) return {make(false)};
  return {make(shape.begins_odd), make(!shape.begins_odd)};
}

}  // namespace orrery::collective
