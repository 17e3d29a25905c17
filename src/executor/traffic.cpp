#include "traffic.hpp"

#include <algorithm>
#include <cstring>

#include "member_hands.hpp"
#include "orrery/base/error.hpp"
#include "orrery/executor/kinds.hpp"
#include "overrun.hpp"

namespace orrery::executor {

using network::Fabric;
using network::LinkId;

Traffic::Traffic(pdes::Kernel& kernel, const Setting& setting, const Fabric& fabric, Rank here, LpId first_lp,
                 std::optional<Overrun>& overrun)
    : kernel_(kernel),
      fabric_(fabric),
      options_(setting.options.network),
      host_of_npu_(setting.host_of_npu),
      here_(here),
      first_lp_(first_lp),
      overrun_(overrun),
      local_of_(setting.host_of_npu.size()) {
  const std::uint32_t per_npu = fabric.links_per_npu();
  servers_.reserve(setting.npus.size() * per_npu);
  for (const NpuSpec& npu : setting.npus) {
    local_of_[npu.id.index()] = static_cast<std::uint32_t>(servers_.size());
    for (std::uint32_t k = 0; k < per_npu; ++k) {
      servers_.emplace_back();
      servers_.back().link = fabric.find(fabric.link_of(npu.id, k));
    }
  }
}

Traffic::Server& Traffic::server_of(LinkId link) {
  const Fabric::Link where = fabric_.find(link);
  return servers_[local_of_[where.owner.index()] + fabric_.number_at_owner(where)];
}

std::uint32_t Traffic::put(const Message& message) {
  if (free_.empty()) {
    messages_.push_back(message);
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  messages_[place] = message;
  return place;
}

Message Traffic::take(const pdes::Event& event) {
  free_.push_back(event.node);
  return messages_[event.node];
}

void Traffic::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  Message message;
  check(bytes.size() == sizeof message, "a message of the network of wrong size");
  std::memcpy(&message, bytes.data(), sizeof message);
  event.node = put(message);
}

std::uint32_t Traffic::send(const Message& message, pdes::Event call) {
  call.target = LpId(first_lp_.value() + fabric_.first(message.source, message.destination).value());
  call.kind = static_cast<std::uint16_t>(EventKind::pass);
  call.node = put(message);
  kernel_.send(here_, call);
  return call.node;
}

void Traffic::multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call) {
  copies_.emplace(send(message, call), std::move(destinations));
}

pdes::Event Traffic::event(Server& server, Time time, pdes::Stage stage, LpId target) const {
  const LpId lp(first_lp_.value() + server.link.id.value());
  return pdes::Event::make(time, stage, lp, server.sequence++, target);
}

void Traffic::serve(const pdes::Event& event) {
  if (!combine(event)) return;
  Server& server = server_of(LinkId(event.target.value() - first_lp_.value()));
  if (options_.switching == network::Switching::cut_through)
    cut_through(server, event);
  else
    store_and_forward(server, event);
}

void Traffic::learn_delays(Server& server, Bytes size) {
  if (server.is_known && server.size == size) return;
  server.size = size;
  server.holds = fabric_.holds(server.link, size);
  server.passes = fabric_.passes(server.link, size);
  server.is_known = true;
}

void Traffic::store_and_forward(Server& server, const pdes::Event& event) {
  const Message& message = messages_[event.node];
  learn_delays(server, message.size);
  const Time there = server.server.serve(event.time, server.holds, message.size) + server.passes;
  if (there == Time::max()) return lose(event);
  pass_on(server, event, next_of(server, message), there);
}

/// What switches combine waits at the link to its destination until the last part is there, with which it goes on.
/// False: it waits.
bool Traffic::combine(const pdes::Event& event) {
  Message& part = messages_[event.node];
  if (part.parts == 0 || copies_.contains(event.node)) return true;
  const Gathering key{event.target.value(), part.tag, part.ordinal, part.service, part.step};
  Gathered& gathered = gathered_[key];
  gathered.tail = std::max(gathered.tail, part.tail);
  if (++gathered.parts < part.parts) {
    free_.push_back(event.node);
    return false;
  }
  part.tail = gathered.tail;
  part.size = part.result;
  gathered_.erase(key);
  return true;
}

// A packet comes when its first byte does, and that goes on at once: at the next link of the dimension it is one
// latency after its service begins. A link is taken until the last byte is through, be it that the link before is
// slower. At the end of a dimension a message is stored whole: its last packet says when. Packets of a message keep
// their order, as they take the same links.
void Traffic::cut_through(Server& server, const pdes::Event& event) {
  Message& packet = messages_[event.node];
  const std::uint64_t rest = packet.size.count() - packet.offset;
  const bool is_whole = options_.packet == Bytes(0) || packet.parts > 0;
  const Bytes size(is_whole ? rest : std::min(rest, options_.packet.count()));
  // Differences of the whole message's times: packets take what the message takes, however often they are rounded.
  const Time takes =
      fabric_.holds(server.link, Bytes(packet.offset) + size) - fabric_.holds(server.link, Bytes(packet.offset));
  const Time begin = server.server.begins(event.time);
  const Time holds = std::max(takes, packet.tail - begin);
  const Time latency = fabric_.passes(server.link, Bytes(0));
  const bool is_last = size.count() == rest;
  if (server.server.serve(event.time, holds, size) == Time::max() || begin + holds + latency == Time::max())
    return lose(event);
  if (packet.is_feeding && !is_last) follow(server, Message(packet), size, begin + holds);
  Message& mine = messages_[event.node];  // `follow` may have moved it
  const auto next = next_of(server, mine);
  if (next && next->dimension == server.link.dimension) {
    mine.is_feeding = false;
    mine.tail = begin + holds + latency;
    return pass_on(server, event, next, fabric_.takes_whole(*next) ? mine.tail : begin + latency);
  }
  if (!is_last) return free_.push_back(event.node);
  mine.is_feeding = true;
  mine.offset = 0;
  mine.tail = Time::zero();
  pass_on(server, event, next, begin + holds + latency);
}

/// The next packet of a message comes to the first link of a dimension when this one has left it.
void Traffic::follow(Server& server, const Message& packet, Bytes size, Time time) {
  Message behind = packet;
  behind.offset += size.count();
  const Time later = std::max(time, kernel_.now() + Time::from_ps(1));
  pdes::Event call = event(server, later, pdes::Stage::server, LpId(first_lp_.value() + server.link.id.value()));
  call.kind = static_cast<std::uint16_t>(EventKind::pass);
  call.node = put(behind);
  kernel_.send(here_, call);
}

void Traffic::lose(const pdes::Event& event) {
  const Message& message = messages_[event.node];
  keep_earliest(overrun_, {event.time, message.source, message.node});
  copies_.erase(event.node);
  free_.push_back(event.node);
}

std::optional<Fabric::Link> Traffic::next_of(const Server& server, const Message& message) const {
  const auto next = fabric_.next(server.link, message.destination);
  if (!next) return {};
  return fabric_.find(*next);
}

/// The message is at the next link, or at its destination, at this time; or copies of it are, for each of several
/// destinations, to which different links lead.
void Traffic::pass_on(Server& server, const pdes::Event& event, const std::optional<Fabric::Link>& next, Time there) {
  if (messages_[event.node].parts == 0) return forward(server, event, next, there);
  const auto copies = copies_.extract(event.node);
  if (!copies) return forward(server, event, next, there);
  Message copy = messages_[event.node];
  free_.push_back(event.node);
  for (const NpuId to : copies.mapped()) {
    copy.destination = to;
    pdes::Event one = event;
    one.node = put(copy);
    forward(server, one, next_of(server, copy), there);
  }
}

void Traffic::forward(Server& server, const pdes::Event& event, const std::optional<Fabric::Link>& next, Time there) {
  const Message message = messages_[event.node];
  const LpId target(next ? first_lp_.value() + next->id.value() : message.destination.value());
  const Rank to = host_of_npu_[next ? next->owner.index() : message.destination.index()];
  pdes::Event onward = this->event(server, there, next ? pdes::Stage::server : pdes::Stage::npu, target);
  onward.kind = static_cast<std::uint16_t>(next ? EventKind::pass : EventKind::arrived);
  onward.node = event.node;
  if (to == here_) {
    kernel_.send(to, onward);
  } else {
    kernel_.send(to, onward, std::as_bytes(std::span(&message, 1)));
    free_.push_back(event.node);
  }
  if (next || (message.kind != Message::Kind::data && !message.wants_receipt)) return;
  pdes::Event receipt = this->event(server, there, pdes::Stage::npu, LpId(message.source.value()));
  receipt.kind = static_cast<std::uint16_t>(message.wants_receipt ? EventKind::wake : EventKind::sent);
  receipt.node = message.node.value();
  receipt.detail = packed({message.service, message.own_step});
  kernel_.send(host_of_npu_[message.source.index()], receipt);
}

std::vector<LinkRecord> Traffic::records() const {
  std::vector<LinkRecord> records;
  for (const Server& server : servers_) {
    const network::LinkStatistics& done = server.server.statistics();
    if (done.messages == 0) continue;
    const auto [from, to] = fabric_.ends(server.link);
    records.push_back({server.link.id.value(), server.link.dimension, from, to, done});
  }
  std::ranges::sort(records, {}, &LinkRecord::link);
  return records;
}

}  // namespace orrery::executor
