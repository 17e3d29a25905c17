#include "delay_messaging.hpp"

#include "noise.hpp"
#include "orrery/collective/message_program.hpp"
#include "orrery/npu/recorded.hpp"

namespace orrery::npu {
namespace {

/// Returns what the end of a send or a receive depends on.
pdes::Awaited awaited_from(const Execution& npu, NpuId peer) {
  const bool is_here = npu.context().hosting.is_here(peer);
  return {.here = is_here, .sends = !is_here};
}

/// Returns how long the data of a send or a receive of `npu` are under way. Sender and receiver draw one factor, as
/// they are in the same iteration.
Time data_delay(const Execution& npu, NodeId id, NpuId from, NpuId to) {
  const Context& context = npu.context();
  const Time exact = context.services.network.delay(from, to, Bytes(npu.node(id).size));
  const Variations& variations = context.options.noise.variations;
  if (!variations.has(DrawnPer::message)) return exact;
  const std::uint64_t receiver_and_tag = std::uint64_t{to.value()} << 32U | channel_of(npu.npu(), id).tag;
  return times_factor(
      exact, variations.factor(DrawnPer::message, {from.value(), receiver_and_tag, npu.schedule().iteration()}));
}

/// Returns who sent the message that ends a receive at `there`, and when.
LastArrival sender_of(const Execution& npu, NodeId receive, Time there) {
  const NpuId sender = channel_of(npu.npu(), receive).other;
  const Time takes = data_delay(npu, receive, sender, npu.npu().id);
  return {there - std::min(takes, there), sender};
}

/// Sends an event to the peer of a send or a receive.
void send_to_peer(Execution& npu, NodeId id, EventKind kind, Time time, std::uint64_t detail, const EventPlace& place) {
  const StreamEnd to = destination_of(npu.npu(), id);
  const Context& context = npu.context();
  const Rank rank = context.hosting.of_npu[to.npu.index()];
  const pdes::Event event = npu.make_event(time, pdes::Stage::client, LpId(to.npu.value()), kind, to.stream, detail);
  npu.order().places().send(npu, rank, event, place);
}

/// Returns how long the clear to send takes from a receiver to a sender.
Time clearance_delay(const Context& context, NpuId receiver, NpuId sender) {
  return std::min(context.services.network.delay(receiver, sender, collective::clear_to_send_size()),
                  half_of(context.of_all.least_recorded));
}

/// Returns when data that leave now are at the receiver.
Time arrival(const Execution& npu, NodeId send, Time now) {
  const NpuId peer = channel_of(npu.npu(), send).other;
  return now + data_delay(npu, send, npu.npu().id, peer);
}

/// Returns when data are at the receiver that leave now because of the clear to send, which says what the receiver
/// recorded. If both sides recorded the message, it takes the shorter duration from when both were ready.
Time arrival(const Execution& npu, NodeId send, Time now, const pdes::Event& clearance, Time issued) {
  const Time own = recorded_cost(*npu.npu().program->graph, send, npu.context().options);
  const Time recorded = std::min(own, Time::from_ps(static_cast<std::int64_t>(clearance.detail)));
  if (recorded == Time::zero()) return arrival(npu, send, now);
  const NpuId peer = channel_of(npu.npu(), send).other;
  return std::max(issued, clearance.time - clearance_delay(npu.context(), peer, npu.npu().id)) + recorded;
}

}  // namespace

DelayMessaging::DelayMessaging(bool senders_wait)
    : clearances_(senders_wait ? std::make_unique<Clearances>() : nullptr) {}

void DelayMessaging::begin_send(Execution& npu, NodeId send, Time now) {
  EventPlaces& places = npu.order().places();
  if (!clearances_) return transfer(npu, send, now, arrival(npu, send, now), places.next(now));
  places.post(send, now);
  const ChannelKey channel = channel_of(npu.npu(), send);
  pdes::Event clearance;
  if (!clearances_->take(channel, clearance)) {
    npu.awaited().add(awaited_from(npu, channel.other));
    return clearances_->leave(channel, send);
  }
  auto& kernel = npu.context().services.kernel;
  if (clearance.time <= now) {
    kernel.raise_depth(npu.npu().lp(), clearance.depth);
    return transfer(npu, send, now, arrival(npu, send, now, clearance, now), places.next_cleared(send, clearance, now));
  }
  places.forget_posted(send);
  clearance.kind = static_cast<std::uint16_t>(EventKind::cleared);
  clearance.node = send.value();
  kernel.resume(clearance);
}

/// Lets the data leave; the sender is free when all of them are at the receiver.
void DelayMessaging::transfer(Execution& npu, NodeId send, Time now, Time there, const EventPlace& place) {
  const NpuId from = npu.npu().id, peer = channel_of(npu.npu(), send).other;
  const Bytes size(npu.node(send).size);
  auto& network = npu.context().services.network;
  network.count_message(from, peer, size, npu.npu().count());
  npu.accounting().count_sent(send, now, size);
  if (there != Time::max()) send_to_peer(npu, send, EventKind::data, there, size.count(), place);
  npu.running(send).last = {now, peer};
  npu.end_at(send, now, there, &place);
}

void DelayMessaging::begin_receive(Execution& npu, NodeId receive, Time now) {
  const ChannelKey channel = channel_of(npu.npu(), receive);
  const Services& services = npu.context().services;
  if (clearances_) {
    const Time there = now + clearance_delay(npu.context(), npu.npu().id, channel.other);
    if (there == Time::max()) return npu.accounting().note_overrun(receive, now, Overrun::Quantity::time);
    const Time recorded = recorded_cost(*npu.npu().program->graph, receive, npu.context().options);
    send_to_peer(npu, receive, EventKind::clear_to_send, there, static_cast<std::uint64_t>(recorded.ps()),
                 npu.order().places().next(now));
  }
  npu.order().places().post(receive, now);
  pdes::Event message;
  if (!receives_.take(channel, message)) {
    const auto awaited = awaited_from(npu, channel.other);
    // What other NPUs here may still send counts only if the kernel knows when they act.
    if (!services.kernel.is_certain(now, awaited)) undecided_.push_back({receive, awaited});
    npu.awaited().add(awaited);
    posted_.add(Time::zero(), npu.lookahead(), receive);
    return receives_.leave(channel, PostedReceive{receive, now});
  }
  if (message.time <= now) return receive_at_once(npu, message, receive, now);
  match(npu, message, {receive, now});
  services.kernel.resume(message);
}

/// Ends a receive whose message was there before it, in the next round of this settle, as any node that takes no time.
void DelayMessaging::receive_at_once(Execution& npu, const pdes::Event& message, NodeId receive, Time now) {
  require_size(npu, receive, Bytes(message.detail));
  npu.context().services.kernel.raise_depth(npu.npu().lp(), message.depth);
  npu.end_receive_at_once(receive, now, npu.order().places().meet(receive, message, now));
}

/// Makes the message of a posted receive the event that ends it.
void DelayMessaging::match(Execution& npu, pdes::Event& message, const PostedReceive& receive) {
  require_size(npu, receive.node, Bytes(message.detail));
  npu.order().places().forget_posted(receive.node);
  arriving_.add(message.time, npu.lookahead(), receive.node);
  message.kind = static_cast<std::uint16_t>(EventKind::received);
  message.node = receive.node.value();
  message.detail = static_cast<std::uint64_t>(receive.since.ps());
}

bool DelayMessaging::admit(Execution& npu, pdes::Event& event) {
  return static_cast<EventKind>(event.kind) == EventKind::data ? admit_data(npu, event)
                                                               : admit_clear_to_send(npu, event);
}

bool DelayMessaging::admit_data(Execution& npu, pdes::Event& event) {
  const ChannelKey channel = channel_of(npu.npu(), event);
  PostedReceive receive;
  if (!receives_.take(channel, receive)) {
    receives_.leave(channel, event);
    return false;
  }
  npu.awaited().remove(awaited_from(npu, channel.other));
  posted_.remove();
  if (decide(receive.node) && event.time <= receive.since) {
    receive_at_once(npu, event, receive.node, receive.since);
    return false;
  }
  match(npu, event, receive);
  return true;
}

bool DelayMessaging::admit_clear_to_send(Execution& npu, pdes::Event& event) {
  const ChannelKey channel = channel_of(npu.npu(), event);
  NodeId send;
  if (!clearances_->take(channel, send)) {
    clearances_->leave(channel, event);
    return false;
  }
  npu.awaited().remove(awaited_from(npu, channel.other));
  if (const Time issued = npu.running(send).start; event.time <= issued) {  // this NPU is ahead of what is certain
    npu.context().services.kernel.raise_depth(npu.npu().lp(), event.depth);
    transfer(npu, send, issued, arrival(npu, send, issued, event, issued),
             npu.order().places().next_cleared(send, event, issued));
    return false;
  }
  npu.order().places().forget_posted(send);
  event.kind = static_cast<std::uint16_t>(EventKind::cleared);
  event.node = send.value();
  return true;
}

/// Takes note that the message of a receive has come. Returns whether it was undecided.
bool DelayMessaging::decide(NodeId receive) {
  return std::erase_if(undecided_, [&](const Undecided& one) { return one.receive == receive; }) > 0;
}

pdes::Awaited DelayMessaging::awaited_by_undecided() const {
  AwaitedCounts counts;
  for (const Undecided& one : undecided_) counts.add(one.awaited);
  return counts.awaited();
}

void DelayMessaging::handle(Execution& npu, const pdes::Event& event) {
  const NodeId node(event.node);
  if (static_cast<EventKind>(event.kind) == EventKind::cleared)
    return transfer(npu, node, event.time, arrival(npu, node, event.time, event, npu.running(node).start),
                    npu.order().places().next(event.time));
  arriving_.remove();
  npu.complete_receive(node, Time::from_ps(static_cast<std::int64_t>(event.detail)), sender_of(npu, node, event.time),
                       event.time);
}

LastArrival DelayMessaging::departure_of(const Execution& npu, const pdes::Event& event) const {
  const NodeId node(event.node);
  if (static_cast<EventKind>(event.kind) == EventKind::received) return sender_of(npu, node, event.time);
  const NpuId receiver = channel_of(npu.npu(), node).other;
  return {event.time - clearance_delay(npu.context(), receiver, npu.npu().id), receiver};
}

void DelayMessaging::serialize(Execution& npu, Archive& archive, std::span<const pdes::Event> pending,
                               const ResumedFrom* resumed_from) {
  ensure(undecided_.empty(), "an undecided receive at a checkpoint");
  archive(receives_);
  if (clearances_) archive(*clearances_);
  if (!archive.reads()) return;
  if (resumed_from != nullptr) take_over(npu.npu(), resumed_from->npu);
  receives_.for_each_posted([&](ChannelKey channel, const PostedReceive& receive) {
    npu.awaited().add(awaited_from(npu, channel.other));
    posted_.add(Time::zero(), npu.lookahead(), receive.node);
  });
  if (clearances_)
    clearances_->for_each_posted(
        [&](ChannelKey channel, NodeId) { npu.awaited().add(awaited_from(npu, channel.other)); });
  for (const pdes::Event& event : pending)
    if (static_cast<EventKind>(event.kind) == EventKind::received)
      arriving_.add(event.time, npu.lookahead(), NodeId(event.node));
}

/// Turns what was left in the channels of `resumed_from` into what is left in those of `resumed`.
void DelayMessaging::take_over(const NpuSpec& resumed, const NpuSpec& resumed_from) {
  const auto own_channel = [&](ChannelKey channel) { return same_channel(resumed, resumed_from, channel); };
  const auto own_event = [&](pdes::Event& event) { event.target = resumed.lp(); };
  receives_.take_over(own_channel, own_event);
  if (clearances_) clearances_->take_over(own_channel, own_event);
}

void DelayMessaging::for_each_posted(const std::function<void(ChannelKey, const PostedReceive&)>& visit) const {
  receives_.for_each_posted(visit);
}

}  // namespace orrery::npu
