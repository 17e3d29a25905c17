#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "line.hpp"
#include "line_script.hpp"
#include "orrery/collective/custom_collective.hpp"

namespace orrery::collective {
namespace {

// Messages that leave a member by one link go one after the other, and so do those that come to it by one: of each
// link the first and the last that a message takes, as in the congestion-aware network,
//
//   leaves[k] = max(ready[k], leaves[k - 1] + m[k - 1] / bandwidth)            in the order k of the sender's link
//   there[k]  = max(leaves[k] + L, there[k - 1] + m[k] / bandwidth)            in that of the receiver's
//
// Both orders are those of members that start together, whoever comes first then, and are kept when they do not. So the
// whole is a fixed sequence of maxima and sums.

/// A link of a message, by who has it: place, dimension of the axis, and which of its links there.
using LinkKey = std::tuple<std::uint32_t, std::size_t, std::uint32_t>;

/// Which of its links in the axis' k-th dimension place `at` uses for a message to or from place `other`. Of the two in
/// a row or a ring, 0 carries what goes upwards.
std::uint32_t link_of(const LineContext& context, std::size_t k, std::uint32_t at, std::uint32_t other, bool sends) {
  const Axis& axis = context.axis;
  const std::uint32_t d = axis.dimensions[k];
  const topology::Dimension& dimension = context.delays.topology().dimension(d);
  const topology::Links& links = context.delays.topology().links();
  std::uint32_t here = axis.coordinate(k, at), next = axis.coordinate(k, other);
  if (context.detours && links.has_failed(d, axis.npus[at])) {
    here = context.delays.topology().coordinate(axis.npus[at], d);
    next = links.next_step(d, axis.npus[at], axis.npus[other]);
  }
  const auto [from, to] = sends ? std::pair(here, next) : std::pair(next, here);
  switch (dimension.shape) {
    case topology::Shape::switched:
    case topology::Shape::fat_tree:
    case topology::Shape::dragonfly:
      return 0;
    case topology::Shape::fully_connected:
      return next;
    case topology::Shape::mesh:
      return from < to ? 0 : 1;
    case topology::Shape::ring:
      return 2 * ((to + dimension.size - from) % dimension.size) <= dimension.size ? 0 : 1;
  }
  ensure_failed("a shape that does not exist", std::source_location::current());
}

/// Of an operation that is no message, or from a message to the end of its receive.
Ps duration_of(const CustomCollective& procedure, std::uint32_t operation, Bytes whole, const LineContext& context) {
  const CustomCollective::Operation& of = procedure[operation];
  const Rules& rules = context.rules;
  switch (of.kind) {
    case CustomCollective::OperationKind::send:
    case CustomCollective::OperationKind::nothing:
      return 0;
    case CustomCollective::OperationKind::receive:
      return rules.bare_custom_collectives ? 0 : context.endpoint_delay;
    case CustomCollective::OperationKind::compute:
    case CustomCollective::OperationKind::reduce:
    case CustomCollective::OperationKind::copy:
      break;
  }
  if (rules.bare_custom_collectives) return std::max(of.duration, tick(context.delays.rounding())).ps();
  if (of.kind == CustomCollective::OperationKind::compute) return of.duration.ps();
  return context.memory(procedure.bytes(operation, whole), of.kind == CustomCollective::OperationKind::copy ? 2 : 3);
}

/// What happens, one after the other.
struct Event {
  enum class Kind : std::uint8_t {
    work,     ///< an operation is over that is no message
    receive,  ///< a receive is over
    send,     ///< a message leaves
    arrive,   ///< it is there
  };
  Kind kind = Kind::work;
  std::uint32_t operation = 0;  ///< of an arrival: the receive
  std::uint32_t link = 0;       ///< by which it leaves or comes
  Ps holds = 0;                 ///< that link
  Ps delay = 0;                 ///< from leaving to being there; from ready to over
};

/// Sums that are known to fit, and sums that are not.
struct Unchecked {
  static Ps sum(Ps a, Ps b) { return a + b; }
};
struct Checked {
  static Ps sum(Ps a, Ps b) { return plus(a, b); }
};

/// Times of one run: of operations when they are ready, of messages when they are there, of links when they are free.
struct Times {
  Ps *ready, *there, *free;
};

/// Lets events happen and tells their times to what waits for them, and to the members.
template <class Sums>
class Run {
 public:
  Run(const CustomCollective& procedure, const Rules& rules, Times at, std::span<Ps> finishes)
      : procedure_(procedure), rules_(rules), at_(at), finishes_(finishes) {}

  /// The time of what happens.
  Ps apply(const Event& event) {
    const std::uint32_t o = event.operation;
    switch (event.kind) {
      case Event::Kind::send:
        return send(event);
      case Event::Kind::arrive: {
        Ps& free = at_.free[event.link];
        if (rules_.share_bandwidth) at_.there[o] = std::max(at_.there[o], Sums::sum(free, event.holds));
        return free = at_.there[o];
      }
      case Event::Kind::receive:
        return end(o, Sums::sum(std::max(at_.ready[o], at_.there[o]), event.delay));
      case Event::Kind::work:
        return end(o, Sums::sum(at_.ready[o], event.delay));
    }
    return 0;
  }

 private:
  Ps send(const Event& event) {
    const std::uint32_t o = event.operation;
    Ps& free = at_.free[event.link];
    const Ps leaves = rules_.share_bandwidth ? std::max(at_.ready[o], free) : at_.ready[o];
    free = Sums::sum(leaves, event.holds);
    Ps& there = at_.there[procedure_[o].partner];
    there = Sums::sum(leaves, event.delay);
    if (rules_.bare_custom_collectives) return end(o, there);
    Ps& finish = finishes_[procedure_[o].position];
    if (rules_.share_bandwidth) finish = std::max(finish, free);  // what comes after finds the link free
    return end(o, at_.ready[o]);
  }

  Ps end(std::uint32_t operation, Ps time) {
    for (const std::uint32_t next : procedure_.successors(operation)) at_.ready[next] = std::max(at_.ready[next], time);
    Ps& finish = finishes_[procedure_[operation].position];
    finish = std::max(finish, time);
    return time;
  }

  const CustomCollective& procedure_;
  const Rules& rules_;
  Times at_;
  std::span<Ps> finishes_;
};

class ProcedureLine final : public LineProgram {
 public:
  ProcedureLine(const PhaseShape& shape, const LineContext& context)
      : procedure_(*shape.procedure),
        rules_(context.rules),
        begin_(rules_.bare_custom_collectives ? 0 : context.endpoint_delay) {
    put_in_order(shape, context);
    std::vector<Ps> finishes(procedure_.num_positions(), 0);
    Scratch scratch;
    run_line<Checked>(finishes, scratch);
    duration_ = std::ranges::max(finishes);
    alike_ = std::ranges::min(finishes) == duration_;
  }

  bool alike() const override { return alike_; }
  Ps duration(std::uint64_t) const override { return duration_; }
  std::size_t memory() const override { return sizeof(*this) + events_.size() * sizeof(Event); }
  void run(std::uint64_t, std::span<Ps> times, Scratch& scratch) const override {
    for (std::size_t at = 0; at < times.size(); at += procedure_.num_positions())
      run_line<Unchecked>(times.subspan(at, procedure_.num_positions()), scratch);
  }

 private:
  /// An event that is to come while members start together, in the order of time, kind and operation (of an arrival:
  /// the send).
  using Pending = std::tuple<Ps, Event::Kind, std::uint32_t>;

  Times times_in(Scratch& scratch) const {
    const std::size_t n = procedure_.operations().size();
    scratch.first.resize(2 * n);
    scratch.second.assign(num_links_, 0);
    return {scratch.first.data(), scratch.first.data() + n, scratch.second.data()};
  }

  /// Nobody is through before all have begun.
  template <class Sums>
  void run_line(std::span<Ps> times, Scratch& scratch) const {
    const Times at = times_in(scratch);
    const Ps last = Sums::sum(std::ranges::max(times), begin_);
    for (std::uint32_t position = 0; position < times.size(); ++position)
      std::fill(at.ready + procedure_.first(position), at.ready + procedure_.first(position + 1),
                Sums::sum(times[position], begin_));
    std::ranges::fill(times, last);
    Run<Sums> run(procedure_, rules_, at, times);
    for (const Event& event : events_) run.apply(event);
  }

  void put_in_order(const PhaseShape& shape, const LineContext& context);
  Event event_of(Event::Kind kind, std::uint32_t operation, const LineContext& context);
  std::uint32_t number_of(const LinkKey& link) {
    return links_.try_emplace(link, static_cast<std::uint32_t>(links_.size())).first->second;
  }

  const CustomCollective& procedure_;
  Rules rules_;
  Ps begin_;     ///< from a member's start to its first operations
  Bytes whole_;  ///< of the data
  std::vector<Event> events_;
  std::map<LinkKey, std::uint32_t> links_;  ///< while events are made
  std::size_t num_links_ = 0;
  Ps duration_ = 0;
  bool alike_ = false;
};

/// Members that start together: whatever is ready first happens first.
void ProcedureLine::put_in_order(const PhaseShape& shape, const LineContext& context) {
  whole_ = shape.whole(context.axis.size);
  const std::uint32_t n = static_cast<std::uint32_t>(procedure_.operations().size());
  num_links_ = 2 * std::size_t{n};
  Scratch scratch;
  const Times at = times_in(scratch);
  std::fill(at.ready, at.ready + n, begin_);
  std::vector<Ps> finishes(procedure_.num_positions());
  Run<Checked> run(procedure_, rules_, at, finishes);
  std::vector<std::uint32_t> missing;  // [operations] dependencies; of a receive its message too
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> pending;
  const auto release = [&](std::uint32_t o) {
    if (--missing[o] > 0) return;
    const CustomCollective::OperationKind act = procedure_[o].kind;
    const auto kind = act == CustomCollective::OperationKind::send      ? Event::Kind::send
                      : act == CustomCollective::OperationKind::receive ? Event::Kind::receive
                                                                        : Event::Kind::work;
    pending.emplace(act == CustomCollective::OperationKind::receive ? std::max(at.ready[o], at.there[o]) : at.ready[o],
                    kind, o);
  };
  for (const CustomCollective::Operation& operation : procedure_.operations())
    missing.push_back(operation.dependencies + (operation.kind == CustomCollective::OperationKind::receive ? 2 : 1));
  for (std::uint32_t o = 0; o < n; ++o) release(o);
  while (!pending.empty()) {
    const auto [time, kind, operation] = pending.top();
    pending.pop();
    const std::uint32_t partner = procedure_[operation].partner;
    const bool arrives = kind == Event::Kind::arrive;
    events_.push_back(event_of(kind, arrives ? partner : operation, context));
    (void)run.apply(events_.back());
    if (kind == Event::Kind::send) {  // whose first byte is there first comes first
      const Ps holds = event_of(Event::Kind::arrive, partner, context).holds;
      pending.emplace(at.there[partner] - holds, Event::Kind::arrive, operation);
    }
    if (arrives)
      release(partner);
    else
      for (const std::uint32_t next : procedure_.successors(operation)) release(next);
  }
  num_links_ = links_.size();
  links_.clear();
}

Event ProcedureLine::event_of(Event::Kind kind, std::uint32_t operation, const LineContext& context) {
  Event event{kind, operation, 0, 0, 0};
  if (kind == Event::Kind::receive || kind == Event::Kind::work) {
    event.delay = duration_of(procedure_, operation, whole_, context);
  } else {
    const Axis& axis = context.axis;
    const bool leaves = kind == Event::Kind::send;
    const std::uint32_t here = procedure_[operation].position;
    const std::uint32_t there = procedure_[procedure_[operation].partner].position;
    const auto differs = [&](std::size_t k) { return axis.coordinate(k, here) != axis.coordinate(k, there); };
    std::size_t k = leaves ? 0 : axis.dimensions.size() - 1;  // the first and the last dimension that it crosses
    while (!differs(k)) leaves ? ++k : --k;
    const Bytes size = procedure_.bytes(operation, whole_);
    event.link = number_of({2 * here + (leaves ? 0 : 1), k, link_of(context, k, here, there, leaves)});
    event.holds = context.holds(k, here, there, size);
    if (leaves) event.delay = context.link(here, there, size);
  }
  return event;
}

/// The same for members that act for themselves, over links that others use too.
class ProcedureScript final : public LineScript {
 public:
  ProcedureScript(const PhaseShape& shape, const LineContext& context)
      : LineScript(Time::from_ps(context.rules.bare_custom_collectives ? 0 : context.endpoint_delay)),
        procedure_(*shape.procedure),
        waits_for_messages_(context.rules.bare_custom_collectives) {
    const Bytes whole = shape.whole(context.axis.size);
    for (std::uint32_t o = 0; o < procedure_.operations().size(); ++o) {
      const bool is_message = procedure_[o].kind == CustomCollective::OperationKind::send;
      sizes_.push_back(is_message ? procedure_.bytes(o, whole) : Bytes(0));
      costs_.push_back(Time::from_ps(duration_of(procedure_, o, whole, context)));
    }
  }

  const CustomCollective* procedure() const override { return &procedure_; }
  std::uint32_t num_steps(std::uint32_t place) const override {
    return procedure_.first(place + 1) - procedure_.first(place);
  }
  Move move(std::uint32_t, std::uint32_t, std::uint32_t step) const override {
    return {.message = sizes_[step],
            .receives = procedure_[step].kind == CustomCollective::OperationKind::receive ? 1U : 0U,
            .cost = costs_[step],
            .sends_one_by_one = waits_for_messages_ && procedure_[step].kind == CustomCollective::OperationKind::send};
  }
  void receivers(std::uint32_t, std::uint32_t, std::uint32_t step, std::vector<Receiver>& out) const override {
    const std::uint32_t to = procedure_[step].partner;
    if (procedure_[step].kind == CustomCollective::OperationKind::send) out.push_back({procedure_[to].position, to});
  }
  void senders(std::uint32_t, std::uint32_t, std::uint32_t step, std::vector<std::uint32_t>& out) const override {
    if (procedure_[step].kind == CustomCollective::OperationKind::receive)
      out.push_back(procedure_[procedure_[step].partner].position);
  }
  std::size_t memory() const override { return sizeof(*this) + sizes_.size() * (sizeof(Bytes) + sizeof(Time)); }

 private:
  const CustomCollective& procedure_;
  bool waits_for_messages_;
  std::vector<Bytes> sizes_;  ///< [operations]
  std::vector<Time> costs_;   ///< [operations]
};

}  // namespace

std::unique_ptr<LineScript> make_procedure_script(const PhaseShape& shape, const LineContext& context) {
  return std::make_unique<ProcedureScript>(shape, context);
}

std::unique_ptr<LineProgram> make_procedure(const PhaseShape& shape, const LineContext& context) {
  return std::make_unique<ProcedureLine>(shape, context);
}

}  // namespace orrery::collective
