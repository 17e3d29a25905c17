// An NPU's messages where every one of them goes over the links of the congestion-aware network. There an NPU awaits
// anything at any time (pdes::Options::lps_run_ahead is off): what comes for it comes at its time.
#include <algorithm>

#include "npu.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/kind.hpp"

namespace orrery::npu {

/// What a collective does, done by an NPU.
class Npu::LinkHands final : public collective::CollectiveTransport {
 public:
  LinkHands(Npu& npu, const Joined& joined, Time now, const Context& context)
      : npu_(npu), joined_(joined), now_(now), context_(context) {}

  void send(std::uint32_t to, Bytes size, network::StepId step, Payload what, std::uint32_t own_step) override {
    network::Message message = message_to(to, size, step);
    message.own_step = own_step;
    message.kind = what == Payload::clear_to_send ? network::Message::Kind::word : network::Message::Kind::step;
    message.wants_receipt = what == Payload::acknowledged_data;
    if (what != Payload::clear_to_send) npu_.count_sent(joined_.node, now_, size);
    npu_.put_on_links(message, now_, context_);
  }
  void send_to_switch(std::span<const collective::MessageProgram::Receiver> members, Bytes size, Bytes result,
                      network::StepId step, Payload what) override {
    std::vector<NpuId> npus;
    for (const auto& member : members)
      npus.push_back(context_.services.communicators.member(joined_.seat, member.member));
    const bool is_first = members[0].member == joined_.seat.position;
    network::Message message = message_to(members[is_first ? 1 : 0].member, size, step);
    message.parts = static_cast<std::uint32_t>(npus.size());
    message.result = result;
    if (what != Payload::clear_to_send) {
      npu_.count_sent(joined_.node, now_, size);
      context_.services.network.count_way(message.source, message.destination, size);
    }
    context_.services.links->multicast(message, std::move(npus), npu_.link_call(now_));
  }
  void wake(network::StepId step, Time time) override {
    if (time == Time::max()) return npu_.note_overrun(joined_.node, now_, Overrun::Quantity::time);
    context_.services.kernel.schedule(
        npu_.event(time, pdes::Stage::npu, npu_.lp(), EventKind::wake, joined_.node.value(), packed(step)));
  }

 private:
  network::Message message_to(std::uint32_t member, Bytes size, network::StepId step) const {
    return {.source = npu_.id_,
            .destination = context_.services.communicators.member(joined_.seat, member),
            .node = joined_.node,
            .tag = joined_.group.value(),
            .size = size,
            .ordinal = joined_.ordinal,
            .service = step.service,
            .step = step.step,
            .member = joined_.seat.position,
            .kind = network::Message::Kind::step};
  }

  Npu& npu_;
  const Joined& joined_;
  Time now_;
  const Context& context_;
};

/// For LinkServers, which sets the rest.
pdes::Event Npu::link_call(Time now) { return pdes::Event::make(now, pdes::Stage::server, lp(), sequence_++, {}); }

bool Npu::is_over_links(NodeId id) const {
  return std::ranges::any_of(joined_, [&](const auto& joined) { return joined->node == id && !joined->is_over; });
}

/// Control messages count nowhere, as in the congestion-unaware network.
void Npu::put_on_links(const network::Message& message, Time now, const Context& context) {
  if (message.kind == network::Message::Kind::data || message.kind == network::Message::Kind::step)
    context.services.network.count_way(message.source, message.destination, message.size);
  context.services.links->send(message, link_call(now));
}

/// To the peer of a send or a receive.
void Npu::tell_over_links(NodeId id, network::Message::Kind kind, Bytes size, Time now, const Context& context) {
  put_on_links({.source = id_, .destination = peer_of(id), .node = id, .tag = tag_of(id), .size = size, .kind = kind},
               now, context);
}

/// The sender is free when all of it is at the receiver.
void Npu::send_over_links(NodeId id, Time now, const Context& context) {
  const Bytes size(node(id).size);
  count_sent(id, now, size);
  tell_over_links(id, network::Message::Kind::data, size, now, context);
}

void Npu::receive_over_links(NodeId id, Time now, const Context& context) {
  activity_.begin(Work::receive, now);
  if (context.options.rendezvous)
    tell_over_links(id, network::Message::Kind::grant, collective::clear_to_send_size(), now, context);
  pdes::Event message;
  if (receives_.take({peer_of(id), tag_of(id)}, message)) return receive_instantly(message, id, now, context);
  posted_.add(lookahead_.sends.tail(id), lookahead_.calls.tail(id), lookahead_.relays->tail(id));
  receives_.leave({peer_of(id), tag_of(id)}, Posted{id, now});
}

bool Npu::arrive(const network::Message& message, const pdes::Event& event, const Context& context) {
  const Conversation key{message.source, message.tag};
  pdes::Event kept = event;
  kept.detail = message.size.count();
  if (message.kind == network::Message::Kind::data) {
    Posted posted;
    if (!receives_.take(key, posted)) {
      receives_.leave(key, kept);
      return false;
    }
    require_size(posted.node, message.size, context);
    posted_.remove();
    activity_.end(Work::receive, event.time);
    finish_node(posted.node, posted.since, event.time);
    return true;
  }
  if (message.kind == network::Message::Kind::grant) {
    NodeId send;
    if (grants_.take(key, send))
      transfer(send, event.time, context);
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
  LinkHands hands(*this, joined, event.time, context);
  joined.run.receive(message.member, {message.service, message.step}, message.kind == network::Message::Kind::word,
                     event.time, hands);
  if (joined.is_over) {
    if (!joined.run.has_unsent_data()) joined_.erase(found);
    return false;
  }
  return leave_if_done(joined, event.time, context);
}

void Npu::join_over_links(NodeId id, Time now, const Context& context) {
  const std::uint32_t use = program_.use_of_node(id);
  const communicator::Communicators::Seat& seat = seats_[use];
  const auto kind = collective::kind_of(node(id).collective);
  const Bytes size(node(id).size);
  const std::uint32_t ordinal =
      context.services.communicators.join(seat, {id_, id, trace_.id_of(id), kind, size, now, is_recorded()});
  joined_.push_back(
      std::make_unique<Joined>(Joined{groups_[use], ordinal, id, seat,
                                      collective::MemberRun(context.services.communicators.script(seat, kind, size),
                                                            seat.position, context.options.rendezvous)}));
  Joined& joined = *joined_.back();
  LinkHands hands(*this, joined, now, context);
  // What came before it joined counts as there, before its own first step.
  const auto is_of_it = [&](const network::Message& m) {
    return m.tag == joined.group.value() && m.ordinal == ordinal;
  };
  for (const network::Message& m : early_)
    if (is_of_it(m))
      joined.run.receive(m.member, {m.service, m.step}, m.kind == network::Message::Kind::word, now, hands);
  std::erase_if(early_, is_of_it);
  joined.run.begin(now, hands);
  if (!joined.run.is_done()) return;
  part_from(joined, now, context);
  take_until(id, now, now, context);
}

bool Npu::wake(NodeId node, network::StepId step, Time now, const Context& context) {
  const auto found =
      std::ranges::find_if(joined_, [&](const auto& joined) { return joined->node == node && !joined->is_over; });
  ensure(found != joined_.end(), "a collective goes on that the NPU is not in");
  Joined& joined = **found;
  LinkHands hands(*this, joined, now, context);
  joined.run.wake(step, now, hands);
  return leave_if_done(joined, now, context);
}

bool Npu::leave_if_done(Joined& joined, Time now, const Context& context) {
  if (!joined.run.is_done()) return false;
  const NodeId id = joined.node;
  part_from(joined, now, context);
  complete(id, now);
  return true;
}

void Npu::part_from(Joined& joined, Time now, const Context& context) {
  context.services.communicators.leave(joined.seat, joined.ordinal, now);
  joined.is_over = true;
  if (!joined.run.has_unsent_data())
    std::erase_if(joined_, [&](const auto& other) { return other.get() == &joined; });
}

}  // namespace orrery::npu
