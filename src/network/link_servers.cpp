#include "orrery/network/link_servers.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "graph_links.hpp"
#include "orrery/base/error.hpp"
#include "shape_links.hpp"

namespace orrery::network {
namespace {

/// The kind of an event by which the message in slot `node` comes to a link.
constexpr std::uint16_t message_is_there = 0;

}  // namespace

using topology::LinkId;

template <class Links>
LinkServers<Links>::LinkServers(const Links& links, const Options& options, const RankPart& part)
    : links_(links),
      options_(options),
      part_(part),
      first_server_(part.hosting.num_npus()),
      order_(part.first_process) {
  std::size_t num_servers = 0;
  for (const NpuId npu : part.npus) num_servers += links_.links_of(npu);
  servers_.reserve(num_servers);
  for (const NpuId npu : part.npus) {
    first_server_[npu.index()] = static_cast<std::uint32_t>(servers_.size());
    for (std::uint32_t k = 0; k < links_.links_of(npu); ++k) {
      servers_.emplace_back();
      servers_.back().link = links_.find(links_.link_of(npu, k));
    }
  }
}

template <class Links>
typename LinkServers<Links>::Server& LinkServers<Links>::server_of(LpId link) {
  const Link found = links_.find(LinkId(link.value() - part_.first_process.value()));
  return servers_[first_server_[found.owner.index()] + links_.number_at_owner(found)];
}

template <class Links>
void LinkServers<Links>::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  if (options_.rules.orders_messages) return unpack_in_order(event, bytes);
  Message message;
  const auto more = bytes.size() - std::min(bytes.size(), sizeof message);
  ensure(bytes.size() >= sizeof message && more % sizeof(NpuId) == 0, "a message of the network of wrong size");
  std::memcpy(&message, bytes.data(), sizeof message);
  event.node = messages_.put(message);
  if (more == 0) return;
  auto& destinations = copies_[event.node];
  destinations.resize(more / sizeof(NpuId));
  std::memcpy(destinations.data(), bytes.data() + sizeof message, more);
}

/// Keeps a message or a receipt of another rank with its place (Rules::orders_messages).
template <class Links>
void LinkServers<Links>::unpack_in_order(pdes::Event& event, std::span<const std::byte> bytes) {
  Archive archive(bytes);
  EventPlace place;
  archive(place);
  if (archive.is_at_end()) return order_.keep_receipt(event, std::move(place));
  Message message;
  std::vector<NpuId> destinations;
  archive(message, destinations);
  event.node = put(message);
  order_.keep(event.node, std::move(place));
  if (!destinations.empty()) copies_[event.node] = std::move(destinations);
}

template <class Links>
std::vector<std::byte> LinkServers<Links>::packed_in_order(std::uint32_t slot) const {
  Archive archive;
  EventPlace place = order_.at(slot);
  Message message = messages_[slot];
  message.scope = pdes::Scope::anywhere;
  std::vector<NpuId> destinations;
  if (const auto copies = copies_.find(slot); copies != copies_.end()) destinations = copies->second;
  archive(place, message, destinations);
  return archive.written();
}

// ---- From NPUs ----

/// Keeps a message. Returns its slot.
template <class Links>
std::uint32_t LinkServers<Links>::put(const Message& message) {
  const std::uint32_t slot = messages_.put(message);
  order_.forget(slot);
  return slot;
}

/// Hands a message to the first link of its route. Returns its slot.
template <class Links>
std::uint32_t LinkServers<Links>::put_into(const Message& message, pdes::Event call) {
  call.target = lp(links_.first(message, call.time));
  call.kind = message_is_there;
  call.node = put(message);
  part_.kernel.send(part_.hosting.here, call);
  return call.node;
}

template <class Links>
void LinkServers<Links>::send(const Message& message, pdes::Event call) {
  put_into(message, call);
}

template <class Links>
void LinkServers<Links>::send_in_order(const Message& message, pdes::Event call, const EventPlace& place) {
  order_.keep(put_into(message, call), place);
}

template <class Links>
void LinkServers<Links>::multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call) {
  copies_.emplace(put_into(message, call), std::move(destinations));
}

template <class Links>
Time LinkServers<Links>::drained(NpuId npu, std::uint32_t before, std::uint32_t after, Time now) const {
  return std::max(now, links_.drained(npu, before, after, [&](std::uint32_t number) {
    return servers_[first_server_[npu.index()] + number].server.begins(now);
  }));
}

// ---- At links ----

template <class Links>
pdes::Event LinkServers<Links>::event(Server& server, Time time, pdes::Stage stage, LpId target) const {
  return pdes::Event::make(time, stage, lp(server.link), server.sequence++, target);
}

template <class Links>
void LinkServers<Links>::serve(const pdes::Event& event) {
  if (wait_for_parts(event)) return;
  Server& server = server_of(event.target);
  if (is_ordered(messages_[event.node])) {
    ++server.num_here;
    arrivals_.push_back({&server, event, {}});
    return;
  }
  if (messages_[event.node].kind == Message::Kind::request) return pass_request(server, event);
  Server& chosen = least_waiting(server, event);
  if (options_.switching == Switching::cut_through)
    cut_through(chosen, event);
  else
    store_and_forward(chosen, event);
}

// As UGAL does (Kim et al., ISCA 2008), a switch compares how long the message waits, times the links that are left.
// It leaves the regular way once in a dimension, so that every message arrives. The owner of the switch's links handles
// events in the order of their times, so that the result does not depend on who simulates which link.
/// Returns the server of the link that a message takes: another one than its regular one if the message leaves the
/// switch over that one earlier by more than the links cost that its way then has more.
template <class Links>
typename LinkServers<Links>::Server& LinkServers<Links>::least_waiting(Server& regular, const pdes::Event& event) {
  Message& message = messages_[event.node];
  const Time now = event.time, wait = regular.server.begins(now) - now;
  if (wait == Time::zero() || message.combining.parts > 0 || message.deflected == regular.link.dimension + 1)
    return regular;
  const auto ways = links_.ways(regular.link, message);
  if (ways.empty()) return regular;
  const auto latency = static_cast<double>(delays(regular, Bytes(0), message.circuits).passes.ps());
  const std::uint32_t fewest = ways.front().second;
  Server* chosen = &regular;
  double least = static_cast<double>(wait.ps()) * fewest;
  for (const auto& [link, left] : ways) {
    Server& other = servers_[first_server_[link.owner.index()] + links_.number_at_owner(link)];
    const Time other_wait = other.server.begins(now) - now;
    const double cost = static_cast<double>(other_wait.ps()) * left;
    const double longer = left > fewest ? (left - fewest) * latency : 0;
    if (cost >= least || static_cast<double>((wait - other_wait).ps()) <= longer) continue;
    chosen = &other;
    least = cost;
  }
  if (chosen != &regular) message.deflected = static_cast<std::uint8_t>(regular.link.dimension + 1);
  return *chosen;
}

/// Returns whether the message is a part that waits at its link for others.
template <class Links>
bool LinkServers<Links>::wait_for_parts(const pdes::Event& event) {
  const Message& part = messages_[event.node];
  if (part.combining.parts == 0 || copies_.contains(event.node)) return false;
  const std::optional<Message> combined = combiner_.add(event.target, part);
  if (!combined) {
    messages_.free(event.node);
    return true;
  }
  messages_[event.node] = *combined;
  return false;
}

template <class Links>
bool LinkServers<Links>::is_ordered(const Message& message) const {
  return options_.rules.orders_messages && options_.switching == Switching::store_and_forward &&
         message.kind != Message::Kind::request && message.combining.parts == 0;
}

template <class Links>
void LinkServers<Links>::settle() {
  const auto beside_others =
      std::ranges::partition(arrivals_, [](const Arrival& it) { return it.server->num_here == 1; });
  for (Arrival& it : beside_others) it.place = order_.offered(it.event, messages_[it.event.node].source);
  std::ranges::sort(beside_others, [](const Arrival& one, const Arrival& other) {
    return std::tie(one.server, one.place, one.event.order) < std::tie(other.server, other.place, other.event.order);
  });
  for (const auto& [server, event, place] : arrivals_) {
    server->num_here = 0;
    store_and_forward(*server, event);
  }
  arrivals_.clear();
}

template <class Links>
EventPlace LinkServers<Links>::take_place(const pdes::Event& event) {
  return order_.take(event, event.kind == static_cast<std::uint16_t>(Delivery::arrived));
}

template <class Links>
KnownDelays::Delays LinkServers<Links>::delays(Server& server, Bytes size, std::uint32_t circuits) {
  if (links_.has_rates())
    return {links_.holds(server.link, size, circuits), links_.passes(server.link, size, circuits)};
  if (server.kind == no_kind) {
    const auto [known, is_new] =
        kinds_.try_emplace(links_.kind(server.link), static_cast<std::uint32_t>(kinds_.size()));
    server.kind = known->second;
    if (is_new) delays_.add_kind();
  }
  return delays_.of(server.kind, size, [&] {
    return KnownDelays::Delays{links_.holds(server.link, size), links_.passes(server.link, size)};
  });
}

/// Returns whether the link fails before the service of a message begins. The message then leaves the queue when that
/// happens, and takes the route that is left from there. All messages behind it do the same.
template <class Links>
bool LinkServers<Links>::fails_before(Server& server, const pdes::Event& event) {
  const Time failure = links_.works_until(server.link);
  if (server.server.begins(event.time) < failure) return false;
  server.server.wait(event.time, failure);
  const Link other = links_.find(links_.instead_of(server.link, messages_[event.node], failure));
  pdes::Event call = this->event(server, failure, pdes::Stage::server, lp(other));
  call.kind = message_is_there;
  call.node = event.node;
  part_.kernel.send(part_.hosting.here, call);
  return true;
}

template <class Links>
void LinkServers<Links>::store_and_forward(Server& server, const pdes::Event& event) {
  if (fails_before(server, event)) return;
  Message& message = messages_[event.node];
  const auto [holds, passes] = delays(server, message.size, message.circuits);
  const Time free = server.server.begins(Time::zero());
  const Time start = server.server.serve(event.time, holds, message.size), there = start + passes;
  if (there == Time::max()) return note_overrun(event);
  if (options_.rules.orders_messages) order_.note_service(server.last, event, message.source, free, start);
  pass_on(server, event, next_link(server, message, there), there);
}

// A packet comes to a link when its first byte does. At the next link of the dimension it is one latency after its
// service begins here. The link is taken until the last byte has passed it, which a slower link before it may delay. At
// the end of a dimension a message is stored whole, and its last packet says when it is there. The packets of a message
// take the same links, so they keep their order.
template <class Links>
void LinkServers<Links>::cut_through(Server& server, const pdes::Event& event) {
  if (fails_before(server, event)) return;
  const Message packet = messages_[event.node];
  const Bytes size = packet_size(packet), offset(packet.packet.offset);
  const bool is_last = offset + size == packet.size;
  // Differences of the whole message's times, so that packets together take what the message takes, however often times
  // are rounded.
  const Time takes =
      delays(server, offset + size, packet.circuits).holds - delays(server, offset, packet.circuits).holds;
  const Time begin = server.server.begins(event.time);
  const Time holds = std::max(takes, packet.packet.tail - begin);
  const Time latency = delays(server, Bytes(0), packet.circuits).passes;
  const Time tail = begin + holds + latency;
  if (server.server.serve(event.time, holds, size) == Time::max() || tail == Time::max()) return note_overrun(event);
  if (packet.packet.is_at_first_link && !is_last) send_next_packet(server, event.node, size, begin + holds);
  const auto next = next_link(server, packet, begin + latency);
  if (next && links_.continues(server.link, *next)) {
    Message::Packet& onward = messages_[event.node].packet;
    onward.is_at_first_link = false;
    onward.tail = tail;
    return pass_on(server, event, next, links_.takes_whole(*next) ? tail : begin + latency);
  }
  if (!is_last) return messages_.free(event.node);
  messages_[event.node].packet = {};
  pass_on(server, event, next, tail);
}

// Requests are cut through whole. Those that pass data are served when they come; the data behind them then wait for
// their service, too.
template <class Links>
void LinkServers<Links>::pass_request(Server& server, const pdes::Event& event) {
  Message& message = messages_[event.node];
  Message::Request& request = message.request;
  const Time takes = delays(server, message.size, 0).holds, latency = delays(server, Bytes(0), 0).passes;
  const Time begin = request.passes_data ? event.time : server.server.begins(event.time);
  const Time holds = std::max(takes, message.packet.tail - begin), tail = begin + holds + latency;
  const bool is_in_range = request.passes_data ? server.server.serve_at_once(event.time, takes, message.size)
                                               : server.server.serve(event.time, holds, message.size) < Time::max();
  if (!is_in_range || tail == Time::max()) return note_overrun(event);
  if (request.wants_notice) {
    pdes::Event left = this->event(server, begin + holds, pdes::Stage::client, LpId(message.source.value()));
    left.kind = static_cast<std::uint16_t>(Delivery::left);
    left.node = request.slot;
    left.detail = left_detail({message.step.id.service, request.held});
    request.wants_notice = false;
    part_.kernel.send(part_.hosting.of_npu[message.source.index()], left);
  }
  const auto next = next_link(server, message, begin + latency);
  const bool goes_on = next && links_.continues(server.link, *next);
  message.packet.tail = goes_on ? tail : Time();
  pass_on(server, event, next, goes_on && !links_.takes_whole(*next) ? begin + latency : tail);
}

/// Returns the size of the packet that begins at the message's offset. What switches combine is not cut.
template <class Links>
Bytes LinkServers<Links>::packet_size(const Message& packet) const {
  const Bytes rest = packet.size - Bytes(packet.packet.offset);
  const bool is_whole = options_.packet == Bytes(0) || packet.combining.parts > 0;
  return is_whole ? rest : std::min(rest, options_.packet);
}

/// Hands the next packet of a message to its first link when this one has left that link.
template <class Links>
void LinkServers<Links>::send_next_packet(Server& server, std::uint32_t slot, Bytes size, Time time) {
  Message behind = messages_[slot];
  behind.packet.offset += size.count();
  const Time later = std::max(time, part_.kernel.now() + Time::from_ps(1));
  pdes::Event call = event(server, later, pdes::Stage::server, lp(server.link));
  call.kind = message_is_there;
  call.node = put(behind);
  order_.copy(slot, call.node);
  part_.kernel.send(part_.hosting.here, call);
}

template <class Links>
void LinkServers<Links>::note_overrun(const pdes::Event& event) {
  const Message& message = messages_[event.node];
  keep_earliest(part_.overrun, {event.time, message.source, message.node});
  copies_.erase(event.node);
  messages_.free(event.node);
}

// ---- Behind links ----

template <class Links>
std::optional<typename LinkServers<Links>::Link> LinkServers<Links>::next_link(const Server& server,
                                                                               const Message& message,
                                                                               Time there) const {
  const auto next = links_.next(server.link, message, there);
  if (!next) return {};
  return links_.find(*next);
}

/// Hands a message to the next link, or to its destination, where it is at the time `there`; or copies of it, if it is
/// at the switch that makes them.
template <class Links>
void LinkServers<Links>::pass_on(Server& server, const pdes::Event& event, const std::optional<Link>& next,
                                 Time there) {
  if (messages_[event.node].combining.parts > 0)
    if (const auto copies = copies_.extract(event.node)) return pass_copies_on(server, event, copies.mapped(), there);
  hand_over(server, event.node, next, there);
}

/// Different links lead to the destinations.
template <class Links>
void LinkServers<Links>::pass_copies_on(Server& server, const pdes::Event& event, std::span<const NpuId> destinations,
                                        Time there) {
  Message copy = messages_.take(event.node);
  for (const NpuId to : destinations) {
    copy.destination = to;
    hand_over(server, put(copy), next_link(server, copy, there), there);
  }
}

/// Hands the message in a slot to the next link, or to its destination.
template <class Links>
void LinkServers<Links>::hand_over(Server& server, std::uint32_t slot, const std::optional<Link>& next, Time there) {
  const Message& message = messages_[slot];
  if (!next) there += message.request.after;
  const LpId target = next ? lp(*next) : LpId(message.destination.value());
  const Rank to = part_.hosting.of_npu[next ? next->owner.index() : message.destination.index()];
  pdes::Event onward = event(server, there, next ? pdes::Stage::server : pdes::Stage::client, target);
  onward.kind = next ? message_is_there : static_cast<std::uint16_t>(Delivery::arrived);
  onward.node = slot;
  if (to == part_.hosting.here) {
    part_.kernel.send(to, onward);
  } else {
    if (options_.rules.orders_messages)
      part_.kernel.send(to, onward, packed_in_order(slot));
    else
      part_.kernel.send(to, onward, std::as_bytes(std::span(&message, 1)));
  }
  if (!next) give_receipt(server, slot, there);
  if (to != part_.hosting.here) messages_.free(slot);
}

/// Tells the source that its message is at the destination, if it waits for that.
template <class Links>
void LinkServers<Links>::give_receipt(Server& server, std::uint32_t slot, Time there) {
  const Message& message = messages_[slot];
  if (message.kind != Message::Kind::data && !message.step.wants_receipt) return;
  pdes::Event receipt = event(server, there, pdes::Stage::client, LpId(message.source.value()));
  receipt.kind = static_cast<std::uint16_t>(message.step.wants_receipt ? Delivery::wake : Delivery::sent);
  receipt.node = message.node.value();
  if (message.step.wants_receipt) receipt.detail = packed({message.step.id.service, message.step.receipt_step});
  const Rank to = part_.hosting.of_npu[message.source.index()];
  if (!order_.knows(slot)) return part_.kernel.send(to, receipt);
  if (to != part_.hosting.here) return part_.kernel.send(to, receipt, packed_place(order_.at(slot)));
  order_.keep_receipt(receipt, slot);
  part_.kernel.send(to, receipt);
}

// ---- Checkpoints ----

/// Returns the message of an event, and the NPUs for which a switch will copy it. A run that goes on from there may
/// have other ranks and cells, so no message is known to stay in one.
template <class Links>
std::vector<std::byte> LinkServers<Links>::pack(const pdes::Event& event) const {
  const bool has_message = event.target >= part_.first_process
                               ? event.kind == message_is_there
                               : event.kind == static_cast<std::uint16_t>(Delivery::arrived);
  if (!has_message) return order_.packed_receipt(event);
  if (options_.rules.orders_messages) return packed_in_order(event.node);
  Archive archive;
  Message message = messages_[event.node];
  message.scope = pdes::Scope::anywhere;
  archive(message);
  if (const auto copies = copies_.find(event.node); copies != copies_.end())
    for (NpuId destination : copies->second) archive(destination);
  return archive.written();
}

template <class Links>
Rank LinkServers<Links>::host_of(LpId process) const {
  return part_.hosting.of_npu[links_.find(LinkId(process.value() - part_.first_process.value())).owner.index()];
}

template <class Links>
std::vector<LpId> LinkServers<Links>::used() {
  std::vector<LpId> used;
  for (const Server& server : servers_)
    if (server.server.statistics().messages > 0 || server.sequence > 0) used.push_back(lp(server.link));
  std::ranges::sort(used);
  return used;
}

template <class Links>
void LinkServers<Links>::serialize(LpId process, Archive& archive) {
  Server& server = server_of(process);
  archive(server.server, server.sequence, server.last);
  combiner_.serialize(process, archive);
}

template <class Links>
std::vector<LinkRecord> LinkServers<Links>::records() const {
  std::vector<LinkRecord> records;
  for (const Server& server : servers_) {
    const LinkStatistics& done = server.server.statistics();
    if (done.messages == 0) continue;
    const auto [from, to] = links_.ends(server.link);
    records.push_back({server.link.id.value(), server.link.dimension, from, to, done});
  }
  std::ranges::sort(records, {}, &LinkRecord::link);
  return records;
}

template class LinkServers<ShapeLinks>;
template class LinkServers<GraphLinks>;

}  // namespace orrery::network
