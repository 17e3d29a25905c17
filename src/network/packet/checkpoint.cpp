// What a checkpoint holds of hosts and switches. Slots are of one rank, and a run may go on with other ranks: packets
// and timers forget theirs, and find flows and receptions again by source and number.
#include <algorithm>
#include <cstring>

#include "devices.hpp"
#include "fast_forward.hpp"
#include "messages.hpp"
#include "orrery/base/error.hpp"
#include "uec.hpp"

namespace orrery::network {
namespace {

/// What a pending timer needs.
struct SavedTimer {
  std::uint32_t flow = 0;
  bool is_current = false;  ///< the flow still waits for it

  void serialize(Archive& archive) { archive(flow, is_current); }
};

/// Returns the entries of a host in a list that is ordered by hosts.
template <class Entry>
std::span<const Entry> entries_of(const std::vector<Entry>& all, std::uint32_t host) {
  const auto found = std::ranges::equal_range(all, host, {}, &Entry::first);
  return {found.begin(), found.end()};
}

}  // namespace

// ---- Hosts and switches ----

void PacketDevices::begin_saving() {
  receptions_.to_save.clear();
  receptions_.pool.for_each([&](std::uint32_t slot, const Reception& reception) {
    receptions_.to_save.emplace_back(reception.destination, slot);
  });
  std::ranges::sort(receptions_.to_save);
  if (uec_) uec_->begin_saving();
}

/// Returns a packet as `put_packet` takes it, without the slots that it knows.
PacketDevices::PacketBytes PacketDevices::bytes_of(std::uint32_t slot) const {
  Packet packet = packets_[slot];
  packet.sender = packet.receiver = packet.next = no_slot;
  const bool has_telemetry = packet.telemetry != no_slot;
  PacketBytes bytes(sizeof packet + (has_telemetry ? sizeof(Telemetry) : 0));
  std::memcpy(bytes.data(), &packet, sizeof packet);
  if (has_telemetry) std::memcpy(bytes.data() + sizeof packet, &telemetry_[packet.telemetry], sizeof(Telemetry));
  return bytes;
}

std::vector<std::byte> PacketDevices::pack(const pdes::Event& event) const {
  if (event.kind == arrival) return bytes_of(event.node);
  if (event.kind != timer) return {};
  SavedTimer saved;
  if (event.node != no_slot) {
    const Flow& flow = flows_[event.node];
    saved = {flow.id.number, flow.timers[event.reserved] == event.detail};
  }
  Archive archive;
  archive(saved);
  return archive.written();
}

void PacketDevices::unpack_timer(pdes::Event& event, std::span<const std::byte> bytes) {
  SavedTimer saved;
  Archive archive(bytes);
  archive(saved);
  const std::uint32_t host = event.target.value() - part_.first_process.value();
  event.node = saved.is_current ? restored_flow({.source = host, .number = saved.flow}).slot : no_slot;
}

/// Returns a flow of a checkpoint, which a timer may name before it is read.
Flow& PacketDevices::restored_flow(const FlowId& id) {
  const auto [found, is_new] = flows_.restored.try_emplace(flow_key(id.source, id.number), no_slot);
  if (!is_new) return flows_[found->second];
  Flow& flow = flows_.add();
  found->second = flow.slot;
  return flow;
}

void PacketDevices::serialize(std::uint32_t node, Archive& archive) {
  std::uint64_t num_wakes = flows_.num_wakes;
  archive(nodes_[node].num_events, nodes_[node].shared, nodes_[node].num_choices, num_wakes);
  flows_.num_wakes = std::max(flows_.num_wakes, num_wakes);
  for (std::uint32_t p = 0; p < system_.graph.ports(node).size(); ++p) {
    if (recorder_) recorder_->serialize(index_of(port(node, p)), archive);
    serialize(port(node, p), archive);
    if (system_.graph.node(node).is_host) serialize(nic(port(node, p)), node, archive);
  }
  if (system_.graph.node(node).is_host) serialize_receptions(node, archive);
  if (uec_ && system_.graph.node(node).is_host) uec_->serialize(node, archive);
}

void PacketDevices::serialize(Port& port, Archive& archive) {
  archive(port.free, port.end_is_due, port.is_paused, port.is_down, port.marking.num_draws, port.done);
  archive(port.ingress.bytes, port.ingress.headroom, port.ingress.pauses_peer);
  if (credits_) credits_->serialize(index_of(port), archive);
  if (uec_) uec_->serialize(port, archive);
  serialize(port.frames, archive);
  serialize(port.queue, archive);
}

void PacketDevices::serialize(PacketQueue& queue, Archive& archive) {
  std::uint32_t count = queue.size, slot = queue.first;
  archive(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    PacketBytes bytes;
    if (!archive.reads()) {
      bytes = bytes_of(slot);
      slot = packets_[slot].next;
    }
    archive(bytes);
    if (archive.reads()) queue.push(packets_, put_packet(bytes));
  }
}

void PacketDevices::serialize(Nic& nic, std::uint32_t host, Archive& archive) {
  archive(nic.num_unsent, nic.num_over, nic.last, nic.wakes_at, nic.wake, nic.passes_next);
  serialize(nic.acknowledgements, archive);
  std::uint64_t count = nic.flows.size();
  archive(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    FlowId id{.source = host};
    if (!archive.reads()) id = nic.flows[i]->id;
    archive(id);
    if (archive.reads()) nic.flows.push_back(&restored_flow(id));
    nic.flows[i]->id = id;
    serialize(*nic.flows[i], archive);
    if (archive.reads() && fast_forward_ && !nic.flows[i]->is_over) fast_forward_->begin(*nic.flows[i]);
  }
}

void PacketDevices::serialize(Flow& flow, Archive& archive) {
  archive(flow.ports, flow.port, flow.bytes, flow.next, flow.has_sent_empty, flow.is_over, flow.available, flow.rate,
          flow.timers, flow.known);
  if (archive.reads() && system_.rules.control->make != nullptr)
    flow.control = system_.rules.control->make(system_.rules.parameters);
  if (flow.control) flow.control->serialize(archive);
  if (archive.reads() && system_.rules.repeats()) flow.recovery = std::make_unique<Recovery>();
  if (flow.recovery) flow.recovery->serialize(archive);
}

/// Writes or reads the messages that a host receives.
void PacketDevices::serialize_receptions(std::uint32_t host, Archive& archive) {
  std::vector<Reception> receptions;
  if (!archive.reads())
    for (const auto& [destination, slot] : entries_of(receptions_.to_save, host))
      receptions.push_back(receptions_.pool[slot]);
  archive(receptions);
  if (!archive.reads()) return;
  for (const Reception& reception : receptions)
    receptions_.by_flow.emplace(flow_key(reception.source, reception.flow), receptions_.pool.put(reception));
}

// ---- Messages ----

Rank PacketMessages::host_of(LpId process) const { return of_node_[process.value() - part_.first_process.value()]; }

std::vector<LpId> PacketMessages::used() {
  devices_->begin_saving();
  saved_incoming_.clear();
  saved_outgoing_.clear();
  for (const auto& [key, slot] : incoming_)
    saved_incoming_.emplace_back(messages_[slot].destination.value(), std::pair(key, slot));
  for (const auto& [key, receipt] : outgoing_)
    saved_outgoing_.emplace_back(static_cast<std::uint32_t>(key >> 32U), std::pair(key, receipt));
  const auto by_host_and_key = [](const auto& entry) { return std::pair(entry.first, entry.second.first); };
  std::ranges::sort(saved_incoming_, {}, by_host_and_key);
  std::ranges::sort(saved_outgoing_, {}, by_host_and_key);
  std::vector<LpId> all;
  for (std::uint32_t node = 0; node < of_node_.size(); ++node)
    if (devices_->is_here(node)) all.emplace_back(part_.first_process.value() + node);
  return all;
}

bool PacketMessages::has_message(const pdes::Event& event) const {
  if (event.target < part_.first_process) return event.kind == static_cast<std::uint16_t>(Delivery::arrived);
  return event.kind == begin || event.kind == announcement;
}

std::vector<std::byte> PacketMessages::pack(const pdes::Event& event) const {
  if (has_message(event)) {
    const auto bytes = std::as_bytes(std::span(&messages_[event.node], 1));
    return {bytes.begin(), bytes.end()};
  }
  return event.target < part_.first_process ? std::vector<std::byte>() : devices_->pack(event);
}

void PacketMessages::serialize(LpId process, Archive& archive) {
  const std::uint32_t node = process.value() - part_.first_process.value();
  devices_->serialize(node, archive);
  if (node >= num_sent_.size()) return;
  std::vector<std::pair<std::uint64_t, Message>> incoming;
  std::vector<std::pair<std::uint64_t, Receipt>> outgoing;
  if (!archive.reads()) {
    for (const auto& [host, entry] : entries_of(saved_incoming_, node))
      incoming.emplace_back(entry.first, messages_[entry.second]);
    for (const auto& [host, entry] : entries_of(saved_outgoing_, node)) outgoing.push_back(entry);
  }
  archive(num_sent_[node], incoming, outgoing);
  if (!recorded_.empty()) archive(recorded_[node].begun, recorded_[node].arrivals);
  if (!archive.reads()) return;
  for (const auto& [key, message] : incoming) incoming_.emplace(key, messages_.put(message));
  outgoing_.insert(outgoing.begin(), outgoing.end());
}

}  // namespace orrery::network
