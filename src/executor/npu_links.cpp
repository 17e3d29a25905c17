// An NPU's messages where every one of them goes over the links of the congestion-aware network. There an NPU awaits
// anything at any time (pdes::Options::lps_run_ahead is off): what comes for it comes at its time.
#include <algorithm>

#include "npu.hpp"
#include "orrery/base/error.hpp"

namespace orrery::executor {

/// What a collective does, done by an NPU.
class Npu::LinkHands final : public MemberRun::Hands {
 public:
  LinkHands(Npu& npu, const Joined& joined, Time now, const Surroundings& around)
      : npu_(npu), joined_(joined), now_(now), around_(around) {}

  void send(std::uint32_t to, Bytes size, StepId step, Sent what, std::uint32_t own_step) override {
    Message message = message_to(to, size, step);
    message.own_step = own_step;
    message.kind = what == Sent::word ? Message::Kind::word : Message::Kind::step;
    message.wants_receipt = what == Sent::data_with_receipt;
    if (what != Sent::word) npu_.count_sent(joined_.node, now_, size);
    npu_.put_on_links(message, now_, around_);
  }
  void send_to_switch(std::span<const collective::Script::Receiver> members, Bytes size, Bytes result, StepId step,
                      Sent what) override {
    std::vector<NpuId> npus;
    for (const auto& member : members) npus.push_back(around_.communicators.member(joined_.seat, member.member));
    const bool is_first = members[0].member == joined_.seat.position;
    Message message = message_to(members[is_first ? 1 : 0].member, size, step);
    message.parts = static_cast<std::uint32_t>(npus.size());
    message.result = result;
    if (what != Sent::word) {
      npu_.count_sent(joined_.node, now_, size);
      around_.network.count_way(message.source, message.destination, size);
    }
    around_.traffic->multicast(message, std::move(npus), npu_.event(now_, pdes::Stage::server, {}, EventKind::pass, 0));
  }
  void wake(StepId step, Time time) override {
    if (time == Time::max()) return npu_.note_overrun(joined_.node, now_, Overrun::Quantity::time);
    around_.kernel.schedule(
        npu_.event(time, pdes::Stage::npu, npu_.lp(), EventKind::wake, joined_.node.value(), packed(step)));
  }

 private:
  Message message_to(std::uint32_t member, Bytes size, StepId step) const {
    return {.source = npu_.id_,
            .destination = around_.communicators.member(joined_.seat, member),
            .node = joined_.node,
            .tag = joined_.group.value(),
            .size = size,
            .ordinal = joined_.ordinal,
            .service = step.service,
            .step = step.step,
            .member = joined_.seat.position,
            .kind = Message::Kind::step};
  }

  Npu& npu_;
  const Joined& joined_;
  Time now_;
  const Surroundings& around_;
};

bool Npu::is_over_links(NodeId id) const {
  return std::ranges::any_of(joined_, [&](const auto& joined) { return joined->node == id && !joined->is_over; });
}

/// Control messages count nowhere, as in the congestion-unaware network.
void Npu::put_on_links(const Message& message, Time now, const Surroundings& around) {
  if (message.kind == Message::Kind::data || message.kind == Message::Kind::step)
    around.network.count_way(message.source, message.destination, message.size);
  around.traffic->send(message, event(now, pdes::Stage::server, {}, EventKind::pass, 0));
}

/// To the peer of a send or a receive.
void Npu::tell_over_links(NodeId id, Message::Kind kind, Bytes size, Time now, const Surroundings& around) {
  put_on_links({.source = id_, .destination = peer_of(id), .node = id, .tag = tag_of(id), .size = size, .kind = kind},
               now, around);
}

/// The sender is free when all of it is at the receiver.
void Npu::send_over_links(NodeId id, Time now, const Surroundings& around) {
  const Bytes size(node(id).size);
  count_sent(id, now, size);
  tell_over_links(id, Message::Kind::data, size, now, around);
}

void Npu::receive_over_links(NodeId id, Time now, const Surroundings& around) {
  activity_.begin(Work::receive, now);
  if (around.options.rendezvous) tell_over_links(id, Message::Kind::grant, collective::rendezvous_word(), now, around);
  pdes::Event message;
  if (receives_.take({peer_of(id), tag_of(id)}, message)) return receive_instantly(message, id, now, around);
  posted_.add(lookahead_.sends.tail(id), lookahead_.calls.tail(id), lookahead_.relays->tail(id));
  receives_.leave({peer_of(id), tag_of(id)}, Posted{id, now});
}

bool Npu::arrive(const Message& message, const pdes::Event& event, const Surroundings& around) {
  const Conversation key{message.source, message.tag};
  pdes::Event kept = event;
  kept.detail = message.size.count();
  if (message.kind == Message::Kind::data) {
    Posted posted;
    if (!receives_.take(key, posted)) {
      receives_.leave(key, kept);
      return false;
    }
    require_size(posted.node, message.size, around);
    posted_.remove();
    activity_.end(Work::receive, event.time);
    finish_node(posted.node, posted.since, event.time);
    return true;
  }
  if (message.kind == Message::Kind::grant) {
    NodeId send;
    if (grants_.take(key, send))
      transfer(send, event.time, around);
    else
      grants_.leave(key, kept);
    return false;
  }
  const auto found = std::ranges::find_if(joined_, [&](const auto& joined) {
    return joined->group.value() == message.tag && joined->ordinal == message.ordinal;
  });
  if (found == joined_.end()) {
    early_.push_back(message);
    return false;
  }
  Joined& joined = **found;
  LinkHands hands(*this, joined, event.time, around);
  joined.run.receive(message.member, {message.service, message.step}, message.kind == Message::Kind::word, event.time,
                     hands);
  if (joined.is_over) {
    if (!joined.run.is_asked_for_more()) joined_.erase(found);
    return false;
  }
  return leave_if_done(joined, event.time, around);
}

void Npu::join_over_links(NodeId id, Time now, const Surroundings& around) {
  const std::uint32_t use = program_.use_of_node(id);
  const Communicators::Seat& seat = seats_[use];
  const auto kind = engine_kind(node(id).collective);
  const Bytes size(node(id).size);
  const std::uint32_t ordinal =
      around.communicators.join(seat, {id_, id, trace_.id_of(id), kind, size, now, is_recorded()});
  joined_.push_back(std::make_unique<Joined>(
      Joined{groups_[use], ordinal, id, seat,
             MemberRun(around.communicators.script(seat, kind, size), seat.position, around.options.rendezvous)}));
  Joined& joined = *joined_.back();
  LinkHands hands(*this, joined, now, around);
  // What came before it joined counts as there, before its own first step.
  const auto is_of_it = [&](const Message& m) { return m.tag == joined.group.value() && m.ordinal == ordinal; };
  for (const Message& m : early_)
    if (is_of_it(m)) joined.run.receive(m.member, {m.service, m.step}, m.kind == Message::Kind::word, now, hands);
  std::erase_if(early_, is_of_it);
  joined.run.begin(now, hands);
  if (!joined.run.is_done()) return;
  part_from(joined, now, around);
  take_until(id, now, now, around);
}

bool Npu::wake(NodeId node, StepId step, Time now, const Surroundings& around) {
  const auto found =
      std::ranges::find_if(joined_, [&](const auto& joined) { return joined->node == node && !joined->is_over; });
  check(found != joined_.end(), "a collective goes on that the NPU is not in");
  Joined& joined = **found;
  LinkHands hands(*this, joined, now, around);
  joined.run.wake(step, now, hands);
  return leave_if_done(joined, now, around);
}

bool Npu::leave_if_done(Joined& joined, Time now, const Surroundings& around) {
  if (!joined.run.is_done()) return false;
  const NodeId id = joined.node;
  part_from(joined, now, around);
  complete(id, now);
  return true;
}

void Npu::part_from(Joined& joined, Time now, const Surroundings& around) {
  around.communicators.leave(joined.seat, joined.ordinal, now);
  joined.is_over = true;
  if (!joined.run.is_asked_for_more())
    std::erase_if(joined_, [&](const auto& other) { return other.get() == &joined; });
}

}  // namespace orrery::executor
