#include "orrery/network/link_servers.hpp"

#include <algorithm>
#include <cstring>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

/// Of events for links: message `node` is there.
constexpr std::uint16_t pass = 0;

}  // namespace

using topology::Fabric;
using topology::LinkId;

LinkServers::LinkServers(pdes::Scheduler& kernel, const LinkDelays& delays, const Options& options,
                         std::span<const NpuId> npus, const Hosting& hosting, LpId first_lp,
                         std::optional<Overrun>& overrun)
    : kernel_(kernel),
      delays_(delays),
      fabric_(delays.fabric()),
      options_(options),
      hosting_(hosting),
      first_lp_(first_lp),
      overrun_(overrun),
      local_of_(hosting.num_npus()) {
  const std::uint32_t per_npu = fabric_.links_per_npu();
  servers_.reserve(npus.size() * per_npu);
  for (const NpuId npu : npus) {
    local_of_[npu.index()] = static_cast<std::uint32_t>(servers_.size());
    for (std::uint32_t k = 0; k < per_npu; ++k) {
      servers_.emplace_back();
      servers_.back().link = fabric_.find(fabric_.link_of(npu, k));
    }
  }
}

LinkServers::Server& LinkServers::server_of(LinkId link) {
  const Fabric::Link where = fabric_.find(link);
  return servers_[local_of_[where.owner.index()] + fabric_.number_at_owner(where)];
}

std::uint32_t LinkServers::put(const Message& message) {
  if (free_.empty()) {
    messages_.push_back(message);
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  messages_[place] = message;
  return place;
}

Message LinkServers::take(const pdes::Event& event) {
  free_.push_back(event.node);
  return messages_[event.node];
}

void LinkServers::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  Message message;
  ensure(bytes.size() == sizeof message, "a message of the network of wrong size");
  std::memcpy(&message, bytes.data(), sizeof message);
  event.node = put(message);
}

std::uint32_t LinkServers::send(const Message& message, pdes::Event call) {
  call.target = LpId(first_lp_.value() + fabric_.first(message.source, message.destination).value());
  call.kind = pass;
  call.node = put(message);
  kernel_.send(hosting_.here, call);
  return call.node;
}

void LinkServers::multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call) {
  copies_.emplace(send(message, call), std::move(destinations));
}

pdes::Event LinkServers::event(Server& server, Time time, pdes::Stage stage, LpId target) const {
  const LpId lp(first_lp_.value() + server.link.id.value());
  return pdes::Event::make(time, stage, lp, server.sequence++, target);
}

void LinkServers::serve(const pdes::Event& event) {
  if (!combine(event)) return;
  Server& server = server_of(LinkId(event.target.value() - first_lp_.value()));
  if (options_.switching == Switching::cut_through)
    cut_through(server, event);
  else
    store_and_forward(server, event);
}

void LinkServers::learn_delays(Server& server, Bytes size) {
  if (server.is_known && server.size == size) return;
  server.size = size;
  server.holds = delays_.holds(server.link, size);
  server.passes = delays_.passes(server.link, size);
  server.is_known = true;
}

void LinkServers::store_and_forward(Server& server, const pdes::Event& event) {
  const Message& message = messages_[event.node];
  learn_delays(server, message.size);
  const Time there = server.server.serve(event.time, server.holds, message.size) + server.passes;
  if (there == Time::max()) return lose(event);
  pass_on(server, event, next_of(server, message), there);
}

/// What switches combine waits at the link to its destination until the last part is there, with which it goes on.
/// False: it waits.
bool LinkServers::combine(const pdes::Event& event) {
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
void LinkServers::cut_through(Server& server, const pdes::Event& event) {
  Message& packet = messages_[event.node];
  const std::uint64_t rest = packet.size.count() - packet.offset;
  const bool is_whole = options_.packet == Bytes(0) || packet.parts > 0;
  const Bytes size(is_whole ? rest : std::min(rest, options_.packet.count()));
  // Differences of the whole message's times: packets take what the message takes, however often they are rounded.
  const Time takes =
      delays_.holds(server.link, Bytes(packet.offset) + size) - delays_.holds(server.link, Bytes(packet.offset));
  const Time begin = server.server.begins(event.time);
  const Time holds = std::max(takes, packet.tail - begin);
  const Time latency = delays_.passes(server.link, Bytes(0));
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
void LinkServers::follow(Server& server, const Message& packet, Bytes size, Time time) {
  Message behind = packet;
  behind.offset += size.count();
  const Time later = std::max(time, kernel_.now() + Time::from_ps(1));
  pdes::Event call = event(server, later, pdes::Stage::server, LpId(first_lp_.value() + server.link.id.value()));
  call.kind = pass;
  call.node = put(behind);
  kernel_.send(hosting_.here, call);
}

void LinkServers::lose(const pdes::Event& event) {
  const Message& message = messages_[event.node];
  keep_earliest(overrun_, {event.time, message.source, message.node});
  copies_.erase(event.node);
  free_.push_back(event.node);
}

std::optional<Fabric::Link> LinkServers::next_of(const Server& server, const Message& message) const {
  const auto next = fabric_.next(server.link, message.destination);
  if (!next) return {};
  return fabric_.find(*next);
}

/// The message is at the next link, or at its destination, at this time; or copies of it are, for each of several
/// destinations, to which different links lead.
void LinkServers::pass_on(Server& server, const pdes::Event& event, const std::optional<Fabric::Link>& next,
                          Time there) {
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

void LinkServers::forward(Server& server, const pdes::Event& event, const std::optional<Fabric::Link>& next,
                          Time there) {
  const Message message = messages_[event.node];
  const LpId target(next ? first_lp_.value() + next->id.value() : message.destination.value());
  const Rank to = hosting_.of_npu[next ? next->owner.index() : message.destination.index()];
  pdes::Event onward = this->event(server, there, next ? pdes::Stage::server : pdes::Stage::client, target);
  onward.kind = next ? pass : static_cast<std::uint16_t>(Delivery::arrived);
  onward.node = event.node;
  if (to == hosting_.here) {
    kernel_.send(to, onward);
  } else {
    kernel_.send(to, onward, std::as_bytes(std::span(&message, 1)));
    free_.push_back(event.node);
  }
  if (next || (message.kind != Message::Kind::data && !message.wants_receipt)) return;
  pdes::Event receipt = this->event(server, there, pdes::Stage::client, LpId(message.source.value()));
  receipt.kind = static_cast<std::uint16_t>(message.wants_receipt ? Delivery::wake : Delivery::sent);
  receipt.node = message.node.value();
  receipt.detail = packed({message.service, message.own_step});
  kernel_.send(hosting_.of_npu[message.source.index()], receipt);
}

std::vector<LinkRecord> LinkServers::records() const {
  std::vector<LinkRecord> records;
  for (const Server& server : servers_) {
    const LinkStatistics& done = server.server.statistics();
    if (done.messages == 0) continue;
    const auto [from, to] = fabric_.ends(server.link);
    records.push_back({server.link.id.value(), server.link.dimension, from, to, done});
  }
  std::ranges::sort(records, {}, &LinkRecord::link);
  return records;
}

}  // namespace orrery::network
