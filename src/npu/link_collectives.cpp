#include "link_collectives.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "link_messaging.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/kind.hpp"

namespace orrery::npu {

using network::Message;

namespace {

/// Returns the queues by which the collectives of an NPU share places; 1 if the turns of its communicators differ.
std::uint32_t queues_of(const Execution& npu) { return std::max(npu.context().queues, 1U); }

/// Stands for the moment when the circuits of the NPU are there, in place of a step.
constexpr network::StepId circuits_are_there{~0U, ~0U};

}  // namespace

/// Carries out what a member's run of a collective asks for.
class LinkCollectives::LinkTransport final : public collective::CollectiveTransport {
 public:
  /// What the member acts on.
  enum class Cause : std::uint8_t { itself, data, clear_to_send };

  LinkTransport(Execution& npu, const Joined& joined, Time now, Cause cause = Cause::itself)
      : npu_(npu), joined_(joined), now_(now), cause_(cause) {}

  void send(std::uint32_t to, Bytes size, network::StepId step, Payload what, std::uint32_t receipt_step) override {
    Message message = message_to(to, size, step);
    message.step.receipt_step = receipt_step;
    message.kind = what == Payload::clear_to_send ? Message::Kind::step_clear_to_send : Message::Kind::step_data;
    message.step.wants_receipt = what == Payload::acknowledged_data;
    if (what != Payload::clear_to_send) npu_.accounting().count_sent(joined_.node, now_, size);
    // Data that have been cleared before leave in an event of their own.
    const bool was_cleared =
        what != Payload::clear_to_send && npu_.context().options.rendezvous && cause_ != Cause::clear_to_send;
    put_on_links(npu_, message, now_,
                 npu_.order().places().next_sending(now_, was_cleared ? Leaving::in_event : Leaving::at_once));
  }
  void send_to_switch(std::span<const collective::MessageProgram::Receiver> members, Bytes size, Bytes result,
                      network::StepId step, Payload what, std::uint32_t chunk) override {
    const Services& services = npu_.context().services;
    std::vector<NpuId> npus;
    for (const auto& member : members) npus.push_back(services.communicators.member(joined_.membership, member.member));
    const bool is_first = members[0].member == joined_.membership.position;
    Message message = message_to(members[is_first ? 1 : 0].member, size, step);
    message.combining = {static_cast<std::uint32_t>(npus.size()), result, chunk};
    if (what != Payload::clear_to_send) {
      npu_.accounting().count_sent(joined_.node, now_, size);
      services.network.count_way(message.source, message.destination, size, message.circuits);
    }
    services.links->multicast(message, std::move(npus), link_call(npu_, now_));
  }
  void wake(network::StepId step, Time time, bool reduces) override {
    if (time == Time::max()) return npu_.accounting().note_overrun(joined_.node, now_, Overrun::Quantity::time);
    if (time == now_) return due_.push_back(step);
    npu_.order().places().wait(
        npu_,
        {.node = joined_.node,
         .step = packed(step),
         .until = time,
         .reduction = reduces ? now_ + npu_.context().last_step(joined_.membership) : Time::zero(),
         .is_for_early_message = cause_ == Cause::itself && step.step != collective::opening_step},
        now_);
  }

  /// Wakes the run for the steps that need no time, and for those that become due by that, in their order.
  void wake_due(collective::MemberRun& run) {
    for (std::size_t i = 0; i < due_.size(); ++i) run.wake(due_[i], now_, *this);
    due_.clear();
  }

 private:
  Message message_to(std::uint32_t member, Bytes size, network::StepId step) const {
    return {.source = npu_.npu().id,
            .destination = npu_.context().services.communicators.member(joined_.membership, member),
            .node = joined_.node,
            .size = size,
            .kind = Message::Kind::step_data,
            .scope = npu_.lookahead().scope_of(joined_.node),
            .circuits = npu_.context().groups[joined_.group.index()].circuits,
            .last = joined_.last,
            .step = {
                .group = joined_.group, .ordinal = joined_.ordinal, .member = joined_.membership.position, .id = step}};
  }

  Execution& npu_;
  const Joined& joined_;
  Time now_;
  Cause cause_;
  std::vector<network::StepId> due_;  ///< steps that end at `now_`; an event of an NPU for itself must be later
};

bool LinkCollectives::join(Execution& npu, NodeId id, GroupId group, const communicator::Membership& membership,
                           Time now, std::optional<collective::Turn> own_turn, Time dark) {
  const Context& context = npu.context();
  auto& communicators = context.services.communicators;
  const auto kind = collective::kind_of(npu.node(id).collective);
  const Bytes size(npu.node(id).size);
  const std::uint32_t ordinal = communicators.join(
      membership, {npu.npu().id, id, npu.npu().trace->id_of(id), kind, size, now, npu.schedule().is_recorded()});
  const collective::Turn turn = own_turn.value_or(communicators.turn(membership, ordinal));
  collective::MemberRun run(communicators.script(membership, kind, size, turn), membership.position,
                            context.options.rendezvous);
  joined_.push_back(
      std::make_unique<Joined>(Joined{group, ordinal, id, membership, turn, std::move(run), {now, npu.npu().id}}));
  Joined& joined = *joined_.back();
  LinkTransport transport(npu, joined, now);
  // What came before it joined counts as there, before its own first step.
  const auto is_of_it = [&](const Message& message) {
    return message.step.group == group && message.step.ordinal == ordinal;
  };
  for (const Message& message : early_) {
    if (!is_of_it(message)) continue;
    joined.last.merge(message.last);
    joined.run.receive(message.step.member, message.step.id, message.kind == Message::Kind::step_clear_to_send, now,
                       transport);
  }
  std::erase_if(early_, is_of_it);
  if (dark > Time::zero()) {
    context.services.kernel.schedule(npu.make_event(now + dark, pdes::Stage::client, npu.npu().lp(), EventKind::wake,
                                                    id.value(), packed(circuits_are_there)));
    return false;
  }
  if (held_queue_ && !joined_beside_) {
    joined_beside_ = id;
    joined.run.begin_beside(joined.turn.own_at(*held_queue_, queues_of(npu)), now, transport);
  } else {
    joined.run.begin(now, transport);
  }
  transport.wake_due(joined.run);
  if (!joined.run.is_done()) return false;
  leave(npu, joined, now);
  return true;
}

std::optional<NodeId> LinkCollectives::arrive(Execution& npu, const Message& message, Time now) {
  const auto found = std::ranges::find_if(joined_, [&](const auto& joined) {
    return joined->group == message.step.group && joined->ordinal == message.step.ordinal;
  });
  if (found == joined_.end()) {
    early_.push_back(message);
    return {};
  }
  Joined& joined = **found;
  joined.last.merge(message.last);
  const bool is_clear = message.kind == Message::Kind::step_clear_to_send;
  LinkTransport transport(npu, joined, now,
                          is_clear ? LinkTransport::Cause::clear_to_send : LinkTransport::Cause::data);
  joined.run.receive(message.step.member, message.step.id, is_clear, now, transport);
  transport.wake_due(joined.run);
  if (!joined.is_over) return leave_if_done(npu, joined, now);
  if (!joined.run.has_unsent_data()) joined_.erase(found);
  return {};
}

std::optional<NodeId> LinkCollectives::wake(Execution& npu, NodeId id, network::StepId step, Time now) {
  const auto found =
      std::ranges::find_if(joined_, [&](const auto& joined) { return joined->node == id && !joined->is_over; });
  ensure(found != joined_.end(), "a collective goes on that the NPU is not in");
  Joined& joined = **found;
  LinkTransport transport(npu, joined, now);
  if (packed(step) == packed(circuits_are_there))
    joined.run.begin(now, transport);
  else
    joined.run.wake(step, now, transport);
  transport.wake_due(joined.run);
  return leave_if_done(npu, joined, now);
}

std::optional<NodeId> LinkCollectives::leave_if_done(Execution& npu, Joined& joined, Time now) {
  if (!joined.run.is_done()) return {};
  const NodeId id = joined.node;
  // A queue is free when the NPU has begun what it begins because of the end of the collective.
  if (npu.order().places().are_known()) held_queue_ = joined.turn.place_of(joined.run.last_queue(), queues_of(npu));
  leave(npu, joined, now);
  return id;
}

std::optional<NodeId> LinkCollectives::end_event(Execution& npu, Time now) {
  const auto held = std::exchange(held_queue_, {});
  const auto beside = std::exchange(joined_beside_, {});
  if (!held || !beside) return {};
  const auto found =
      std::ranges::find_if(joined_, [&](const auto& joined) { return joined->node == *beside && !joined->is_over; });
  if (found == joined_.end()) return {};
  Joined& joined = **found;
  LinkTransport transport(npu, joined, now);
  joined.run.free_slot(joined.turn.own_at(*held, queues_of(npu)), now, transport);
  transport.wake_due(joined.run);
  return leave_if_done(npu, joined, now);
}

/// Ends this NPU's part. The collective is kept as long as others will still ask for data.
void LinkCollectives::leave(Execution& npu, Joined& joined, Time now) {
  npu.context().services.communicators.leave(joined.membership, joined.ordinal, now);
  npu.running(joined.node).last = joined.last;
  joined.is_over = true;
  if (!joined.run.has_unsent_data()) std::erase_if(joined_, [&](const auto& other) { return other.get() == &joined; });
}

void LinkCollectives::serialize(Execution& npu, const std::vector<communicator::Membership>& memberships,
                                Archive& archive) {
  archive(early_);
  std::uint64_t count = joined_.size();
  archive(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint32_t ordinal = 0;
    NodeId id;
    collective::Turn turn;
    if (!archive.reads()) {
      ordinal = joined_[i]->ordinal;
      id = joined_[i]->node;
      turn = joined_[i]->turn;
    }
    archive(ordinal, id, turn);
    if (archive.reads()) {
      const std::uint32_t use = npu.npu().program->use_of_node(id);
      const auto& membership = memberships[use];
      auto script = npu.context().services.communicators.script(
          membership, collective::kind_of(npu.node(id).collective), Bytes(npu.node(id).size), turn);
      collective::MemberRun run(std::move(script), membership.position, npu.context().options.rendezvous);
      joined_.push_back(
          std::make_unique<Joined>(Joined{npu.npu().groups[use], ordinal, id, membership, turn, std::move(run), {}}));
    }
    archive(joined_[i]->run, joined_[i]->last, joined_[i]->is_over);
  }
}

bool LinkCollectives::is_under_way(NodeId id) const {
  return std::ranges::any_of(joined_, [&](const auto& joined) { return joined->node == id && !joined->is_over; });
}

bool LinkCollectives::is_asked_for_more() const {
  return std::ranges::any_of(joined_, [](const auto& joined) { return joined->is_over; });
}

}  // namespace orrery::npu
