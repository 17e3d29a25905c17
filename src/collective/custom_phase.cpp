#include "custom_phase.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "orrery/base/error.hpp"

namespace orrery::collective {
namespace {

using OperationKind = CustomCollective::OperationKind;

// Messages that leave a member by one link go one after the other, and so do those that come to it by one: of each link
// the first and the last that a message takes, as in the congestion-aware network,
//
//   leaves[k]  = max(ready[k], leaves[k - 1] + m[k - 1] / bandwidth)           in the order k of the sender's link
//   arrives[k] = max(leaves[k] + L, arrives[k - 1] + m[k] / bandwidth)         in that of the receiver's
//
// Both orders are those of members that start together, and are kept when members do not. So the whole is a fixed
// sequence of maxima and sums.

/// The link by which a message leaves or comes: twice the position (plus 1 where it comes), the dimension of the axis,
/// and which of the position's links there.
using LinkKey = std::tuple<std::uint32_t, std::size_t, std::uint64_t>;

/// Returns which of its links in the axis' k-th dimension position `at` uses for a message to or from position `other`.
std::uint64_t link_of(const GroupContext& context, std::size_t k, std::uint32_t at, std::uint32_t other, bool sends) {
  const Axis& axis = context.axis;
  const std::uint32_t d = axis.dimensions[k];
  const topology::Links& links = context.delays.topology().links();
  std::uint32_t here = axis.coordinate(k, at), next = axis.coordinate(k, other);
  if (context.has_detours && links.has_failed(d, axis.npus[at])) {
    here = context.delays.topology().coordinate(axis.npus[at], d);
    next = links.next_step(d, axis.npus[at], axis.npus[other]);
  }
  const topology::Wiring& wiring = context.delays.topology().wiring(d);
  const topology::GroupLink link = sends ? wiring.first_link(here, next) : wiring.last_link(next, here);
  return std::uint64_t{link.position} * wiring.links_per_position() + link.number;
}

/// Returns the duration of an operation that is no message, or the time from the delivery of a message to the end of
/// its receive.
Ps duration_of(const CustomCollective& custom, std::uint32_t operation, Bytes whole, const GroupContext& context) {
  const CustomCollective::Operation& of = custom[operation];
  const Rules& rules = context.rules;
  switch (of.kind) {
    case OperationKind::send:
    case OperationKind::nothing:
      return 0;
    case OperationKind::receive:
      return rules.bare_custom_collectives ? 0 : context.endpoint_delay;
    case OperationKind::compute:
    case OperationKind::reduce:
    case OperationKind::copy:
      break;
  }
  if (rules.bare_custom_collectives) return std::max(of.duration, tick(context.delays.rounding())).ps();
  if (of.kind == OperationKind::compute) return of.duration.ps();
  if (of.in_switch) return 0;
  return context.memory(custom.bytes(operation, whole), of.kind == OperationKind::copy ? 2 : 3);
}

/// One thing that happens. Events of a collective happen in one order.
struct CustomEvent {
  enum class Kind : std::uint8_t {
    work,     ///< an operation that is no message ends
    receive,  ///< a receive ends
    send,     ///< a message leaves
    arrive,   ///< a message is delivered
  };
  Kind kind = Kind::work;
  std::uint32_t operation = 0;  ///< index of the operation; the receive for an arrival
  std::uint32_t link = 0;       ///< link by which the message leaves or comes
  Ps holds = 0;                 ///< for how long the message holds this link
  Ps delay = 0;                 ///< from leaving to delivery; from being ready to the end
};

/// Times of one run: when operations are ready, when messages have been delivered (by their receives), when links are
/// free.
struct CustomTimes {
  Ps *ready, *there, *free;
};

/// Computes the times of events and passes them on to the operations that wait for them, and to the positions.
template <class Sums>
class CustomRun {
 public:
  CustomRun(const CustomCollective& custom, const Rules& rules, CustomTimes at, std::span<Ps> finishes)
      : custom_(custom), rules_(rules), at_(at), finishes_(finishes) {}

  /// Returns the time of the event.
  Ps apply(const CustomEvent& event) {
    const std::uint32_t o = event.operation;
    switch (event.kind) {
      case CustomEvent::Kind::send:
        return send(event);
      case CustomEvent::Kind::arrive: {
        Ps& free = at_.free[event.link];
        if (rules_.share_bandwidth) at_.there[o] = std::max(at_.there[o], Sums::sum(free, event.holds));
        return free = at_.there[o];
      }
      case CustomEvent::Kind::receive:
        return end(o, Sums::sum(std::max(at_.ready[o], at_.there[o]), event.delay));
      case CustomEvent::Kind::work:
        return end(o, Sums::sum(at_.ready[o], event.delay));
    }
    return 0;
  }

 private:
  Ps send(const CustomEvent& event) {
    const std::uint32_t o = event.operation;
    Ps& free = at_.free[event.link];
    const Ps leaves = rules_.share_bandwidth ? std::max(at_.ready[o], free) : at_.ready[o];
    free = Sums::sum(leaves, event.holds);
    Ps& there = at_.there[custom_[o].partner];
    there = Sums::sum(leaves, event.delay);
    if (rules_.bare_custom_collectives) return end(o, there);
    Ps& finish = finishes_[custom_[o].position];
    if (rules_.share_bandwidth) finish = std::max(finish, free);  // what comes after finds the link free
    return end(o, at_.ready[o]);
  }

  Ps end(std::uint32_t operation, Ps time) {
    for (const std::uint32_t next : custom_.successors(operation)) at_.ready[next] = std::max(at_.ready[next], time);
    Ps& finish = finishes_[custom_[operation].position];
    finish = std::max(finish, time);
    return time;
  }

  const CustomCollective& custom_;
  const Rules& rules_;
  CustomTimes at_;
  std::span<Ps> finishes_;
};

class CustomEvaluator final : public GroupEvaluator {
 public:
  CustomEvaluator(const CustomCollective& custom, Bytes whole, const GroupContext& context)
      : custom_(custom),
        rules_(context.rules),
        begin_(rules_.bare_custom_collectives ? 0 : context.endpoint_delay),
        whole_(whole) {
    put_in_order(context);
    std::vector<Ps> finishes(custom_.num_positions(), 0);
    Scratch scratch;
    run_group<CheckedSums>(finishes, scratch);
    duration_ = std::ranges::max(finishes);
    finishes_together_ = std::ranges::min(finishes) == duration_;
  }

  bool finishes_together() const override { return finishes_together_; }
  Ps duration() const override { return duration_; }
  std::size_t memory() const override { return sizeof(*this) + events_.size() * sizeof(CustomEvent); }
  void run(std::span<Ps> times, Scratch& scratch) const override {
    for (std::size_t at = 0; at < times.size(); at += custom_.num_positions())
      run_group<UncheckedSums>(times.subspan(at, custom_.num_positions()), scratch);
  }

 private:
  /// An event that is to come while positions start together, in the order of time, kind and operation (of an arrival:
  /// the send).
  using Pending = std::tuple<Ps, CustomEvent::Kind, std::uint32_t>;

  CustomTimes times_in(Scratch& scratch) const {
    const std::size_t n = custom_.operations().size();
    scratch.first.resize(2 * n);
    scratch.second.assign(num_links_, 0);
    return {scratch.first.data(), scratch.first.data() + n, scratch.second.data()};
  }

  /// No position finishes before all have begun.
  template <class Sums>
  void run_group(std::span<Ps> times, Scratch& scratch) const {
    const CustomTimes at = times_in(scratch);
    const Ps last = Sums::sum(std::ranges::max(times), begin_);
    for (std::uint32_t position = 0; position < times.size(); ++position)
      std::fill(at.ready + custom_.first(position), at.ready + custom_.first(position + 1),
                Sums::sum(times[position], begin_));
    std::ranges::fill(times, last);
    CustomRun<Sums> run(custom_, rules_, at, times);
    for (const CustomEvent& event : events_) run.apply(event);
  }

  void put_in_order(const GroupContext& context);
  CustomEvent event_of(CustomEvent::Kind kind, std::uint32_t operation, const GroupContext& context);
  std::uint32_t number_of(const LinkKey& link) {
    return links_.try_emplace(link, static_cast<std::uint32_t>(links_.size())).first->second;
  }

  const CustomCollective& custom_;
  Rules rules_;
  Ps begin_;     ///< from a position's start to its first operations
  Bytes whole_;  ///< size of the data
  std::vector<CustomEvent> events_;
  std::map<LinkKey, std::uint32_t> links_;  ///< while events are put in order
  std::size_t num_links_ = 0;
  Ps duration_ = 0;
  bool finishes_together_ = false;
};

/// Puts the events in the order in which they happen if positions start together: what is ready first happens first.
void CustomEvaluator::put_in_order(const GroupContext& context) {
  const std::uint32_t n = static_cast<std::uint32_t>(custom_.operations().size());
  num_links_ = 2 * std::size_t{n};
  Scratch scratch;
  const CustomTimes at = times_in(scratch);
  std::fill(at.ready, at.ready + n, begin_);
  std::vector<Ps> finishes(custom_.num_positions());
  CustomRun<CheckedSums> run(custom_, rules_, at, finishes);
  std::vector<std::uint32_t> missing;  // [operations] dependencies; of a receive its message too
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> pending;
  const auto release = [&](std::uint32_t o) {
    if (--missing[o] > 0) return;
    const OperationKind does = custom_[o].kind;
    const auto kind = does == OperationKind::send      ? CustomEvent::Kind::send
                      : does == OperationKind::receive ? CustomEvent::Kind::receive
                                                       : CustomEvent::Kind::work;
    pending.emplace(does == OperationKind::receive ? std::max(at.ready[o], at.there[o]) : at.ready[o], kind, o);
  };
  for (const CustomCollective::Operation& operation : custom_.operations())
    missing.push_back(operation.dependencies + (operation.kind == OperationKind::receive ? 2 : 1));
  for (std::uint32_t o = 0; o < n; ++o) release(o);
  while (!pending.empty()) {
    const auto [time, kind, operation] = pending.top();
    pending.pop();
    const std::uint32_t partner = custom_[operation].partner;
    const bool arrives = kind == CustomEvent::Kind::arrive;
    events_.push_back(event_of(kind, arrives ? partner : operation, context));
    (void)run.apply(events_.back());
    if (kind == CustomEvent::Kind::send) {  // the message whose first byte comes first is first
      const Ps holds = event_of(CustomEvent::Kind::arrive, partner, context).holds;
      pending.emplace(at.there[partner] - holds, CustomEvent::Kind::arrive, operation);
    }
    if (arrives)
      release(partner);
    else
      for (const std::uint32_t next : custom_.successors(operation)) release(next);
  }
  num_links_ = links_.size();
  links_.clear();
}

CustomEvent CustomEvaluator::event_of(CustomEvent::Kind kind, std::uint32_t operation, const GroupContext& context) {
  CustomEvent event{kind, operation, 0, 0, 0};
  if (kind == CustomEvent::Kind::receive || kind == CustomEvent::Kind::work) {
    event.delay = duration_of(custom_, operation, whole_, context);
  } else {
    const Axis& axis = context.axis;
    const bool leaves = kind == CustomEvent::Kind::send;
    const std::uint32_t here = custom_[operation].position;
    const std::uint32_t there = custom_[custom_[operation].partner].position;
    const auto differs = [&](std::size_t k) { return axis.coordinate(k, here) != axis.coordinate(k, there); };
    std::size_t k = leaves ? 0 : axis.dimensions.size() - 1;  // the first and the last dimension that it crosses
    while (!differs(k)) leaves ? ++k : --k;
    const Bytes size = custom_.bytes(operation, whole_);
    event.link = number_of({2 * here + (leaves ? 0 : 1), k, link_of(context, k, here, there, leaves)});
    event.holds = custom_[operation].in_switch ? 0 : context.holds(k, here, there, size);
    if (leaves) event.delay = context.link(here, there, size);
  }
  return event;
}

/// The operations as members carry them out. Steps are numbers of operations.
class CustomProgram final : public PositionProgram {
 public:
  CustomProgram(const CustomCollective& custom, Bytes whole, const GroupContext& context)
      : PositionProgram(Time::from_ps(context.rules.bare_custom_collectives ? 0 : context.endpoint_delay)),
        custom_(custom),
        awaits_delivery_(context.rules.bare_custom_collectives) {
    for (std::uint32_t o = 0; o < custom_.operations().size(); ++o) {
      sizes_.push_back(custom_[o].kind == OperationKind::send ? custom_.bytes(o, whole) : Bytes(0));
      costs_.push_back(Time::from_ps(duration_of(custom_, o, whole, context)));
    }
  }

  const CustomCollective* custom_collective() const override { return &custom_; }
  std::uint32_t num_steps(std::uint32_t position) const override {
    return custom_.first(position + 1) - custom_.first(position);
  }
  void step(std::uint32_t, std::uint32_t operation, MemberStep& out) const override {
    const CustomCollective::Operation& of = custom_[operation];
    out.step.reset();
    out.step.bytes = sizes_[operation];
    out.step.awaits_delivery = awaits_delivery_ && of.kind == OperationKind::send;
    if (of.kind == OperationKind::send) out.step.sends.push_back({custom_[of.partner].position, of.partner});
    if (of.kind == OperationKind::receive) out.step.receives.push_back(custom_[of.partner].position);
    out.cost = costs_[operation];
    out.reduction = Time::zero();
    out.is_clear_to_send = false;
  }
  std::size_t memory() const override { return sizeof(*this) + sizes_.size() * (sizeof(Bytes) + sizeof(Time)); }

 private:
  const CustomCollective& custom_;
  bool awaits_delivery_;
  std::vector<Bytes> sizes_;  ///< [operations]
  std::vector<Time> costs_;   ///< [operations]
};

class CustomPhase final : public PhaseAlgorithm {
 public:
  CustomPhase(const CustomCollective& custom, Bytes whole, bool is_bare)
      : custom_(custom), whole_(whole), is_bare_(is_bare) {}

  std::unique_ptr<GroupEvaluator> evaluator(const GroupContext& context) const override {
    return std::make_unique<CustomEvaluator>(custom_, whole_, context);
  }
  std::unique_ptr<PositionProgram> program(const GroupContext& context) const override {
    return std::make_unique<CustomProgram>(custom_, whole_, context);
  }
  void count_bytes(std::uint64_t chunks, SentBytes& sent) const override {
    for (std::uint32_t o = 0; o < custom_.operations().size(); ++o)
      if (custom_[o].kind == OperationKind::send && !custom_[o].in_switch)
        sent.add(custom_[o].position, custom_[custom_[o].partner].position, chunks, custom_.bytes(o, whole_));
  }
  /// A position may have nothing to do.
  std::uint64_t fewest_endpoint_delays() const override { return is_bare_ ? 0 : 1; }
  Symmetry symmetry() const override { return {}; }
  std::uint64_t depth() const override {
    std::uint32_t most = 0;
    for (std::uint32_t i = 0; i < custom_.num_positions(); ++i)
      most = std::max(most, custom_.first(i + 1) - custom_.first(i));
    return most;
  }

 private:
  const CustomCollective& custom_;
  Bytes whole_;
  bool is_bare_;
};

}  // namespace

std::shared_ptr<const PhaseAlgorithm> make_custom_phase(const PhaseShape& shape, std::uint32_t size,
                                                        const Rules& rules) {
  ensure(shape.custom != nullptr, "no custom collective for so many members");
  const Bytes whole = shape.kind == Kind::all_gather ? times(shape.size, size) : shape.size;
  return std::make_shared<const CustomPhase>(shape.custom->for_whole(whole), whole, rules.bare_custom_collectives);
}

}  // namespace orrery::collective
