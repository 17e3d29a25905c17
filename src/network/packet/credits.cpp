// Credits: a packet is sent only if the end of its link has room for it (docs/packet-network.md, Credits).
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "devices.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"

namespace orrery::network {

// ---- The ledger ----

LinkCredits::LinkCredits(const PacketGraph& graph, const PacketRules& rules) : num_channels_(rules.virtual_channels) {
  for (std::uint32_t node = 0; node < graph.num_nodes(); ++node)
    for (const PacketGraph::Port& port : graph.ports(node)) {
      has_turns_ = has_turns_ || graph.link_of(port).turns_channel;
      // The credit of a packet is back one round trip after the packet has left, if it is passed on at once.
      const PacketGraph::Way way = graph.way_of(port);
      const Time round_trip = way.delay + graph.way_into(port).delay;
      const auto bits = static_cast<unsigned __int128>(way.rate) * static_cast<std::uint64_t>(round_trip.ps());
      const auto filling = static_cast<std::uint64_t>(bits / 8'000'000'000'000U) + 1 + 2 * rules.largest_packet();
      whole_.push_back(static_cast<std::int64_t>(rules.credits.value_or(filling)));
      left_.insert(left_.end(), num_channels_, whole_.back());
    }
  has_turns_ = has_turns_ && num_channels_ > 1;
  held_.resize(left_.size());
  waits_since_.resize(whole_.size(), never);
}

Time LinkCredits::end_wait(std::size_t port, Time now) {
  const Time since = std::exchange(waits_since_[port], never);
  return since == never ? Time::zero() : now - since;
}

void LinkCredits::serialize(std::size_t port, Archive& archive) {
  for (std::uint32_t channel = 0; channel < num_channels_; ++channel) archive(left(port, channel), held(port, channel));
  archive(waits_since_[port]);
}

// ---- Ports ----

/// Returns the channel on which a packet takes the next link. It is the same on all links, by a hash of the flow. On
/// links that turn channels it is one of a pair, and the second one of the pair behind them.
std::uint8_t PacketDevices::channel_for(const Port& out, const Packet& packet) const {
  const std::uint32_t channels = credits_->num_channels();
  if (channels == 1) return 0;
  const std::uint64_t hash = mix(mix(packet.source, packet.destination), packet.ports) >> 32U;
  if (!credits_->has_turns()) return static_cast<std::uint8_t>(hash % channels);
  const PacketGraph& graph = system_.graph;
  const PacketGraph::Link& link = graph.link_of(graph.ports(out.node)[out.number]);
  bool is_turned = link.turns_channel;
  if (!is_turned && packet.source != out.node)
    is_turned =
        graph.link_of(graph.ports(out.node)[packet.port]).dimension == link.dimension && packet.channel % 2 == 1;
  return static_cast<std::uint8_t>(hash % (channels / 2) * 2 + (is_turned ? 1 : 0));
}

/// Finds the first packet of a queue whose channel has credit for it, and puts it to the front. Packets of one channel
/// do not overtake each other.
bool PacketDevices::find_covered(Port& port, PacketQueue& queue) {
  const std::size_t index = index_of(port);
  const std::uint32_t all = (1U << credits_->num_channels()) - 1;
  if (port.is_down) return true;  // a link that has failed loses all that it gets
  std::uint32_t stopped = 0, before = no_slot;
  std::size_t place = 0;
  for (std::uint32_t slot = queue.first; slot != no_slot && stopped != all;
       before = slot, ++place, slot = packets_[slot].next) {
    const std::uint8_t channel = channel_for(port, packets_[slot]);
    if ((stopped >> channel & 1U) != 0) continue;
    if (packets_[slot].size > credits_->left(index, channel)) {
      stopped |= 1U << channel;
      continue;
    }
    if (before == no_slot) return true;
    queue.advance(packets_, before);
    if (recorder_ && &queue == &port.queue) recorder_->overtake(index, place);
    return true;
  }
  credits_->begin_wait(index, now());
  return false;
}

/// Returns whether the next packet of a flow has credit.
bool PacketDevices::may_begin(const Port& port, const Flow& flow) {
  if (port.is_down) return true;
  Packet packet;
  packet.source = flow.id.source;
  packet.destination = flow.id.destination;
  packet.ports = flow.ports;
  const std::uint64_t size =
      std::min<std::uint64_t>(system_.rules.payload, flow.bytes - flow.first_to_send()) + system_.rules.header;
  if (static_cast<std::int64_t>(size) <= credits_->left(index_of(port), channel_for(port, packet))) return true;
  credits_->begin_wait(index_of(port), now());
  return false;
}

void PacketDevices::spend_credit(Port& port, Packet& packet) {
  const std::size_t index = index_of(port);
  packet.channel = channel_for(port, packet) & 0xfU;
  credits_->left(index, packet.channel) -= packet.size;
  ensure(credits_->left(index, packet.channel) >= 0 || port.is_down, "a packet is sent without credit");
  port.done.credit_wait += credits_->end_wait(index, now());
}

/// Counts a packet that stays at a node for a while.
void PacketDevices::hold(const Port& in, const Packet& packet) {
  credits_->held(index_of(in), packet.channel) += packet.size;
}

/// Gives back the credit of a packet that begins to leave a node, or is dropped there.
void PacketDevices::release(std::uint32_t node, const Packet& packet) {
  const Port& in = port(node, packet.port);
  credits_->held(index_of(in), packet.channel) -= packet.size;
  return_credit(in, packet);
}

void PacketDevices::return_credit(const Port& in, const Packet& packet) {
  pdes::Event returned = event(in.node, in.peer.node, now() + std::max(in.delay, least_link_delay));
  returned.kind = credit;
  returned.reserved = static_cast<std::uint16_t>(in.peer.port);
  returned.node = packet.channel;
  returned.detail = packet.size;
  part_.kernel.send(part_.of_node[in.peer.node], returned);
}

void PacketDevices::take_credit(const pdes::Event& event) {
  Port& out = port(event.target.value() - part_.first_process.value(), event.reserved);
  credits_->left(index_of(out), event.node) += static_cast<std::int64_t>(event.detail);
  if (credits_->waits(index_of(out))) kick(out);
}

/// Begins to send a packet of a switch. Each link has a buffer of its own there, so that none is shared.
void PacketDevices::forward_on_credit(Port& out, std::uint32_t slot) {
  if (out.marking.is_on) mark(out, packets_[slot]);
  if (system_.rules.control->uses_telemetry && packets_[slot].is_data()) append_telemetry(out, packets_[slot]);
  transmit(out, slot);
}

// ---- The end of a run ----

std::vector<CreditWait> PacketDevices::credit_waits() const {
  std::vector<CreditWait> waits;
  if (!credits_) return waits;
  const std::uint64_t channels = credits_->num_channels();
  for_each_port([&](const Port& out) {
    for (std::uint32_t slot = out.queue.first; slot != no_slot; slot = packets_[slot].next) {
      const Packet& packet = packets_[slot];
      const Port& in = ports_[nodes_[out.node].first_port + packet.port];
      const std::uint8_t channel = channel_for(out, packet);
      const CreditWait wait{(nodes_[in.peer.node].first_port + in.peer.port) * channels + packet.channel,
                            index_of(out) * channels + channel,
                            in.peer.node,
                            out.node,
                            out.peer.node,
                            channel};
      if (waits.empty() || waits.back() != wait) waits.push_back(wait);
    }
  });
  std::ranges::sort(waits);
  const auto same = std::ranges::unique(waits);
  waits.erase(same.begin(), same.end());
  return waits;
}

/// Returns which credit is not where it must be when no event is left.
std::string PacketDevices::find_credit_leak() const {
  std::vector<std::int64_t> waiting(ports_.size() * credits_->num_channels());
  for (const Port& out : ports_)
    for (std::uint32_t slot = out.queue.first; slot != no_slot; slot = packets_[slot].next)
      waiting[(nodes_[out.node].first_port + packets_[slot].port) * credits_->num_channels() +
              packets_[slot].channel] += packets_[slot].size;
  for (const Port& port : ports_)
    for (std::uint32_t channel = 0; is_here(port.node) && channel < credits_->num_channels(); ++channel) {
      const std::size_t index = index_of(port);
      const std::int64_t there = waiting[index * credits_->num_channels() + channel];
      if (credits_->held(index, channel) != there)
        return fmt::format("port {} of node {} holds credit for {} bytes on channel {}, and {} bytes wait", port.number,
                           port.node, credits_->held(index, channel), channel, there);
      const std::size_t peer = nodes_[port.peer.node].first_port + port.peer.port;
      const std::int64_t sent = credits_->whole(index) - credits_->left(index, channel);
      if (sent != (is_here(port.peer.node) ? credits_->held(peer, channel) : 0))
        return fmt::format("port {} of node {} lacks credit for {} bytes on channel {}, which are not at node {}",
                           port.number, port.node, sent, channel, port.peer.node);
    }
  return {};
}

std::vector<CreditWait> find_circle(std::vector<CreditWait> waits) {
  std::ranges::sort(waits);
  std::map<std::uint64_t, std::size_t> of_held;
  for (std::size_t i = waits.size(); i > 0; --i) of_held[waits[i - 1].held] = i - 1;
  std::vector<std::uint32_t> visit(waits.size(), 0);  // 0: not seen yet
  for (std::size_t first = 0; first < waits.size(); ++first) {
    std::vector<CreditWait> way;
    std::size_t at = first;
    for (; visit[at] == 0;) {
      visit[at] = static_cast<std::uint32_t>(first) + 1;
      way.push_back(waits[at]);
      const auto next = of_held.find(waits[at].wanted);
      if (next == of_held.end()) break;
      at = next->second;
    }
    const auto begin = std::ranges::find(way, waits[at]);
    if (begin == way.end() || way.back().wanted != waits[at].held) continue;
    std::rotate(begin, std::ranges::min_element(begin, way.end(), {}, &CreditWait::at), way.end());
    return {begin, way.end()};
  }
  return {};
}

std::string describe_credit_waits(std::vector<CreditWait> waits,
                                  const std::function<std::string(std::int64_t)>& name_of) {
  if (waits.empty()) return {};
  constexpr std::size_t most_shown = 16;
  const std::vector<CreditWait> circle = find_circle(waits);
  std::string devices;
  for (std::size_t i = 0; i < std::min(circle.size(), most_shown); ++i)
    devices += fmt::format("{} -> ", name_of(circle[i].at));
  if (circle.size() > most_shown) devices += fmt::format("{} more -> ", circle.size() - most_shown);
  if (!circle.empty()) devices = " in a circle: " + devices + name_of(circle.front().at);
  return fmt::format(
      "packets wait for credits of each other's links{}. Give system.network.packets.credits more bytes or "
      "virtual-channels: 2 (with which Rings and Dragonflies have no circles), or take routes without circles.",
      devices.empty() ? fmt::format(": {} towards {}", name_of(waits[0].at), name_of(waits[0].to)) : devices);
}

}  // namespace orrery::network
