// Evaluates the steps of each position. A step that begins at s ends at
//
//   end = max(s, max over its messages of (max(s', s + D) + L)) + cost
//
// s' is when the sender's step began; D is the delay of the clear to send, with rendezvous only. A step that awaits
// delivery also waits for the messages that it sends. The next step begins at the end. All steps are put in an order in
// which each comes after those that it waits for; then one pass over them gives all times.
#include <algorithm>
#include <span>
#include <utility>

#include "algorithm.hpp"
#include "evaluation.hpp"
#include "orrery/base/error.hpp"

namespace orrery::collective {
namespace {

/// The steps of all positions in an order in which they can end. The time at which a step begins is kept in a slot.
class StepGraph {
 public:
  /// A message that the end of a step waits for.
  struct Wait {
    std::uint32_t sender_slot = 0;    ///< slot of the step in which it is sent
    std::uint32_t receiver_slot = 0;  ///< slot of the step that receives it
    std::uint32_t from = 0, to = 0;   ///< positions
    Bytes bytes;
  };
  /// The end of a step. The slot of the k-th end is `positions + k`.
  struct End {
    std::uint32_t slot = 0;  ///< slot of the step
    std::uint32_t num_waits = 0;
    std::uint32_t num_reductions = 0;
    Bytes reduced;
    bool pays_endpoint_delay = false;
  };

  StepGraph(const SteppedAlgorithm& algorithm, bool rendezvous)
      : size_(algorithm.task().size), rendezvous_(rendezvous) {
    read_steps(algorithm);
    put_in_order();
    draft_ = {};
  }

  const std::vector<End>& ends() const { return ends_; }
  /// Returns the waits of all ends, in their order.
  const std::vector<Wait>& waits() const { return waits_; }
  /// Returns the slot of each position's finish. The slot of the start of position i is i.
  const std::vector<std::uint32_t>& last_slots() const { return last_slots_; }
  std::size_t num_slots() const { return size_ + ends_.size(); }

 private:
  struct Message {
    std::uint32_t sender = 0, receiver = 0;  ///< steps, numbered over all positions
    Bytes bytes;
  };
  struct StepOf {
    std::uint32_t position = 0;
    std::uint32_t first_message = 0;  ///< index of the first message that it sends
    std::uint32_t num_reductions = 0;
    bool pays_endpoint_delay = false, awaits_delivery = false;
    Bytes reduced;
  };
  /// What is needed while the steps are put in order.
  struct Draft {
    std::vector<StepOf> steps;                 ///< steps of all positions, and one more that ends their messages
    std::vector<Message> messages;             ///< messages in the order of their senders
    std::vector<std::uint32_t> first_receive;  ///< [steps + 1] into receives
    std::vector<std::uint32_t> receives;       ///< messages, by receiver
    std::vector<std::uint32_t> slot_of;        ///< [steps]
    std::vector<std::uint32_t> missing;        ///< [steps] what must begin before the step can end
    std::vector<std::uint32_t> ready;          ///< steps that can end
  };

  void read_steps(const SteppedAlgorithm& algorithm) {
    for (std::uint32_t i = 0; i < size_; ++i)
      first_.push_back(first_[i] + static_cast<std::uint32_t>(algorithm.num_steps(i)));
    draft_.steps.reserve(first_[size_] + std::size_t{1});
    Step step;
    for (std::uint32_t i = 0; i < size_; ++i)
      for (std::uint32_t s = first_[i]; s < first_[i + 1]; ++s) {
        algorithm.step(i, s - first_[i], step);
        ensure(!step.through_switch, "steps through a switch need a closed form");
        draft_.steps.push_back({i, static_cast<std::uint32_t>(draft_.messages.size()), step.num_reductions,
                                step.pays_endpoint_delay, step.awaits_delivery, step.reduced});
        for (const Receiver& to : step.sends) {
          draft_.messages.push_back({s, first_[to.member] + to.step, step.bytes});
          ensure(draft_.messages.back().receiver < first_[to.member + 1],
                 "a message is for a step that does not exist");
        }
      }
    draft_.steps.push_back({size_, static_cast<std::uint32_t>(draft_.messages.size()), 0, false, false, Bytes(0)});
    draft_.first_receive.assign(first_[size_] + std::size_t{1}, 0);
    for (const Message& message : draft_.messages) ++draft_.first_receive[message.receiver + 1];
    for (std::uint32_t s = 0; s < first_[size_]; ++s) draft_.first_receive[s + 1] += draft_.first_receive[s];
    draft_.receives.resize(draft_.messages.size());
    std::vector<std::uint32_t> next(draft_.first_receive.begin(), draft_.first_receive.end() - 1);
    for (std::uint32_t m = 0; m < draft_.messages.size(); ++m) draft_.receives[next[draft_.messages[m].receiver]++] = m;
  }

  std::uint32_t num_sends(std::uint32_t s) const {
    return draft_.steps[s + 1].first_message - draft_.steps[s].first_message;
  }
  std::span<const std::uint32_t> receives_of(std::uint32_t s) const {
    return std::span(draft_.receives)
        .subspan(draft_.first_receive[s], draft_.first_receive[s + 1] - draft_.first_receive[s]);
  }

  /// A step can end when its own and all steps that send to it have begun; with rendezvous a step that awaits delivery
  /// needs the steps that receive its messages to have begun too.
  void put_in_order() {
    const std::uint32_t num_steps = first_[size_];
    for (std::uint32_t s = 0; s < num_steps; ++s)
      draft_.missing.push_back(1 + static_cast<std::uint32_t>(receives_of(s).size()) +
                               (rendezvous_ && draft_.steps[s].awaits_delivery ? num_sends(s) : 0));
    draft_.slot_of.resize(num_steps);
    draft_.ready.reserve(num_steps);
    last_slots_.resize(size_);
    ends_.reserve(num_steps);
    waits_.reserve(draft_.messages.size());
    for (std::uint32_t i = 0; i < size_; ++i) begin(first_[i], i, i);
    std::size_t num_ended = 0;
    for (; num_ended < draft_.ready.size(); ++num_ended) {
      const std::uint32_t s = draft_.ready[num_ended];
      begin(s + 1, draft_.steps[s].position, end(s));
    }
    ensure(num_ended == num_steps, "the steps of an algorithm wait for each other in a circle");
  }

  void release(std::uint32_t s) {
    if (--draft_.missing[s] == 0) draft_.ready.push_back(s);
  }

  /// Begins step s of a position, or ends the position if it has no more steps.
  void begin(std::uint32_t s, std::uint32_t position, std::uint32_t slot) {
    if (s == first_[position + 1]) {
      last_slots_[position] = slot;
      return;
    }
    draft_.slot_of[s] = slot;
    release(s);
    const std::uint32_t first = draft_.steps[s].first_message;
    for (std::uint32_t m = first; m < first + num_sends(s); ++m) release(draft_.messages[m].receiver);
    if (!rendezvous_) return;
    for (const std::uint32_t m : receives_of(s))
      if (const std::uint32_t sender = draft_.messages[m].sender; draft_.steps[sender].awaits_delivery) release(sender);
  }

  void add_wait(std::uint32_t m) {
    const Message& message = draft_.messages[m];
    waits_.push_back({draft_.slot_of[message.sender], draft_.slot_of[message.receiver],
                      draft_.steps[message.sender].position, draft_.steps[message.receiver].position, message.bytes});
  }

  /// Ends a step and returns the slot of the end. A step that neither waits nor costs anything ends when it begins.
  std::uint32_t end(std::uint32_t s) {
    const StepOf& step = draft_.steps[s];
    const auto first_wait = waits_.size();
    for (const std::uint32_t m : receives_of(s)) add_wait(m);
    for (std::uint32_t k = 0; step.awaits_delivery && k < num_sends(s); ++k) add_wait(step.first_message + k);
    const auto num_waits = static_cast<std::uint32_t>(waits_.size() - first_wait);
    if (num_waits == 0 && !step.pays_endpoint_delay && step.num_reductions == 0) return draft_.slot_of[s];
    ends_.push_back({draft_.slot_of[s], num_waits, step.num_reductions, step.reduced, step.pays_endpoint_delay});
    return static_cast<std::uint32_t>(num_slots() - 1);
  }

  std::uint32_t size_;
  bool rendezvous_;
  std::vector<std::uint32_t> first_{0};  ///< [positions + 1] step
  std::vector<std::uint32_t> last_slots_;
  std::vector<End> ends_;
  std::vector<Wait> waits_;
  Draft draft_;
};

class StepEvaluator final : public GroupEvaluator {
 public:
  StepEvaluator(const SteppedAlgorithm& algorithm, const GroupContext& context)
      : size_(context.axis.size), opening_(algorithm.begins_with_endpoint_delay() ? context.endpoint_delay : 0) {
    const StepGraph graph(algorithm, context.rendezvous);
    for (const StepGraph::End& end : graph.ends()) {
      Ps cost = end.pays_endpoint_delay ? context.endpoint_delay : 0;
      if (end.num_reductions > 0) cost = plus(cost, times(context.reduction(end.reduced), end.num_reductions));
      ends_.push_back({end.slot, end.num_waits, cost});
    }
    for (const StepGraph::Wait& wait : graph.waits()) {
      waits_.push_back({wait.sender_slot, context.link(wait.from, wait.to, wait.bytes)});
      if (context.rendezvous) clears_.push_back({wait.receiver_slot, context.clear_to_send(wait.from, wait.to)});
    }
    last_slots_ = graph.last_slots();
    std::vector<Ps> finishes(size_, 0);
    Scratch scratch;
    run_groups<CheckedSums>(finishes, scratch);
    duration_ = std::ranges::max(finishes);
    finishes_together_ = std::ranges::min(finishes) == duration_;
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }
  std::size_t memory() const override {
    return sizeof(*this) + ends_.size() * sizeof(End) + (waits_.size() + clears_.size()) * sizeof(Delay) +
           last_slots_.size() * sizeof(last_slots_[0]);
  }
  void run(std::span<Ps> times, Scratch& scratch) const override { run_groups<UncheckedSums>(times, scratch); }

 private:
  struct End {
    std::uint32_t slot = 0;
    std::uint32_t num_waits = 0;
    Ps cost = 0;
  };
  struct Delay {
    std::uint32_t slot = 0;  ///< slot of the time after which it is over
    Ps delay = 0;
  };

  template <class Sums>
  void run_groups(std::span<Ps> times, Scratch& scratch) const {
    scratch.first.resize(size_ + ends_.size());
    for (std::size_t at = 0; at < times.size(); at += size_) {
      if (clears_.empty())
        run_group<Sums, false>(times.data() + at, scratch.first.data());
      else
        run_group<Sums, true>(times.data() + at, scratch.first.data());
    }
  }

  template <class Sums, bool rendezvous>
  void run_group(Ps* group, Ps* slots) const {
    for (std::size_t i = 0; i < size_; ++i) slots[i] = Sums::sum(group[i], opening_);
    Ps* next = slots + size_;
    const Delay* wait = waits_.data();
    const Delay* clear = clears_.data();
    for (const End& end : ends_) {
      Ps time = slots[end.slot];
      for (const Delay* const last = wait + end.num_waits; wait != last; ++wait) {
        Ps sent = slots[wait->slot];
        if constexpr (rendezvous) {
          sent = std::max(sent, Sums::sum(slots[clear->slot], clear->delay));
          ++clear;
        }
        time = std::max(time, Sums::sum(sent, wait->delay));
      }
      *next++ = Sums::sum(time, end.cost);
    }
    for (std::size_t i = 0; i < size_; ++i) group[i] = slots[last_slots_[i]];
  }

  std::uint32_t size_;
  Ps opening_;  ///< from a start to the first step
  std::vector<End> ends_;
  std::vector<Delay> waits_;   ///< beginning of the sender's step and link delay, for all ends
  std::vector<Delay> clears_;  ///< beginning of the receiver's step and delay of the clear to send, with rendezvous
  std::vector<std::uint32_t> last_slots_;  ///< [positions]
  bool finishes_together_ = false;
  Ps duration_ = 0;
};

}  // namespace

std::unique_ptr<GroupEvaluator> SteppedAlgorithm::evaluate(const GroupContext& context) const {
  return std::make_unique<StepEvaluator>(*this, context);
}

/// A broadcast or reduce may end for a position that waits for nobody: see after_all_have_begun.
std::uint64_t SteppedAlgorithm::fewest_endpoint_delays() const {
  if (task_.kind == Kind::broadcast || task_.kind == Kind::reduce) return 2;
  const StepGraph graph(*this, false);
  std::vector<std::uint64_t> delays(task_.size, begins_with_endpoint_delay() ? 1 : 0);
  auto wait = graph.waits().begin();
  for (const StepGraph::End& end : graph.ends()) {
    std::uint64_t fewest = delays[end.slot];
    for (const auto last = wait + end.num_waits; wait != last; ++wait)
      fewest = std::min(fewest, delays[wait->sender_slot]);
    delays.push_back(fewest + (end.pays_endpoint_delay ? 1 : 0));
  }
  std::uint64_t fewest = ~std::uint64_t{0};
  for (const std::uint32_t slot : graph.last_slots()) fewest = std::min(fewest, delays[slot]);
  return fewest;
}

}  // namespace orrery::collective
