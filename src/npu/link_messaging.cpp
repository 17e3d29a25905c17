#include "link_messaging.hpp"

#include "orrery/collective/message_program.hpp"

namespace orrery::npu {
namespace {

using network::Message;

/// Sends a message to the peer of a send or a receive.
void send_over_links(Execution& npu, NodeId id, Message::Kind kind, Bytes size, Time now, const EventPlace& place) {
  const ChannelKey channel = channel_of(npu.npu(), id);
  put_on_links(npu,
               {.source = npu.npu().id,
                .destination = channel.other,
                .node = id,
                .tag = channel.tag,
                .size = size,
                .kind = kind,
                .scope = npu.lookahead().scope_of(id),
                .last = {now, npu.npu().id}},
               now, place);
}

/// Lets the data leave. The sender is free when all of them are at the receiver: an event of the links says so.
void transfer_over_links(Execution& npu, NodeId send, Time now, const EventPlace& place) {
  const Bytes size(npu.node(send).size);
  npu.accounting().count_sent(send, now, size);
  npu.running(send).last = {now, channel_of(npu.npu(), send).other};
  send_over_links(npu, send, Message::Kind::data, size, now, place);
}

}  // namespace

pdes::Event link_call(Execution& npu, Time now) {
  return npu.make_event(now, pdes::Stage::server, {}, EventKind::complete, 0);
}

void put_on_links(Execution& npu, const Message& message, Time now, const EventPlace& place) {
  const Services& services = npu.context().services;
  const pdes::Event call = link_call(npu, now);
  if (message.kind == Message::Kind::data || message.kind == Message::Kind::step_data)
    services.network.count_way(message.source, message.destination, message.size, message.circuits);
  if (place.is_known())
    services.links->send_in_order(message, call, place);
  else
    services.links->send(message, call);
}

void LinkMessaging::begin_send(Execution& npu, NodeId send, Time now) {
  Clearance clearance;
  const ChannelKey channel = channel_of(npu.npu(), send);
  if (npu.context().options.rendezvous && !clearances_.take(channel, clearance))
    return clearances_.leave(channel, send);
  if (!npu.context().options.rendezvous)
    return transfer_over_links(npu, send, now, npu.order().places().next_sending(now, Leaving::at_once));
  const EventPlace place = npu.order().places().next_sending(now, Leaving::in_event);
  if (npu.context().options.network.rules.clears_first)
    cleared_.emplace_back(send, place);
  else
    transfer_over_links(npu, send, now, place);
}

void LinkMessaging::settle(Execution& npu, Time now) {
  for (const auto& [send, place] : cleared_) transfer_over_links(npu, send, now, place);
  cleared_.clear();
}

void LinkMessaging::begin_receive(Execution& npu, NodeId receive, Time now) {
  if (npu.context().options.rendezvous)
    send_over_links(npu, receive, Message::Kind::clear_to_send, collective::clear_to_send_size(), now,
                    npu.order().places().next_sending(now, Leaving::at_once));
  const ChannelKey channel = channel_of(npu.npu(), receive);
  Bytes size;
  if (receives_.take(channel, size)) {
    require_size(npu, receive, size);
    return npu.end_receive_at_once(receive, now, {npu.order().places().next(now)});
  }
  posted_.add(Time::zero(), npu.lookahead(), receive);
  receives_.leave(channel, PostedReceive{receive, now});
}

bool LinkMessaging::arrive(Execution& npu, const Message& message, Time now) {
  const ChannelKey channel{message.source, message.tag};
  if (message.kind == Message::Kind::clear_to_send) {
    NodeId send;
    if (clearances_.take(channel, send))
      transfer_over_links(npu, send, now, npu.order().places().next_sending(now, Leaving::at_once));
    else
      clearances_.leave(channel, Clearance{});
    return false;
  }
  PostedReceive receive;
  if (!receives_.take(channel, receive)) {
    receives_.leave(channel, message.size);
    return false;
  }
  require_size(npu, receive.node, message.size);
  posted_.remove();
  npu.complete_receive(receive.node, receive.since, message.last, now);
  return true;
}

void LinkMessaging::serialize(Execution& npu, Archive& archive, std::span<const pdes::Event>,
                              const ResumedFrom* resumed_from) {
  ensure(cleared_.empty(), "a send that is about to leave at a checkpoint");
  ensure(resumed_from == nullptr, "a folded run over links");
  archive(receives_, clearances_);
  if (!archive.reads()) return;
  receives_.for_each_posted(
      [&](ChannelKey, const PostedReceive& receive) { posted_.add(Time::zero(), npu.lookahead(), receive.node); });
}

void LinkMessaging::for_each_posted(const std::function<void(ChannelKey, const PostedReceive&)>& visit) const {
  receives_.for_each_posted(visit);
}

}  // namespace orrery::npu
