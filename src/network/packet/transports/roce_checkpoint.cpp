// The state of the senders of RoCE in a checkpoint. Slots belong to one rank, and a run may continue on other ranks.
// Packets and timers therefore forget their slots, and find flows again by source and number.
#include "roce_sender.hpp"

namespace orrery::network {
namespace {

/// The flow of a pending timer.
struct SavedTimer {
  std::uint32_t flow = 0;
  bool is_current = false;  ///< whether the flow still waits for it

  void serialize(Archive& archive) { archive(flow, is_current); }
};

}  // namespace

std::vector<std::byte> RoceSender::pack(const pdes::Event& event) const {
  if (event.kind != NodeEvents::flow_timer) return {};
  SavedTimer saved;
  if (event.node != no_slot) {
    const Flow& flow = state_.flows[event.node];
    saved = {flow.id.number, flow.timers[event.reserved] == event.detail};
  }
  Archive archive;
  archive(saved);
  return archive.written();
}

void RoceSender::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  SavedTimer saved;
  Archive archive(bytes);
  archive(saved);
  const std::uint32_t host = services_.events.node_of(event);
  event.node = saved.is_current ? restored_flow({.source = host, .number = saved.flow}).slot : no_slot;
}

/// Returns a flow of a checkpoint, which a timer may name before it is read.
Flow& RoceSender::restored_flow(const FlowId& id) {
  const auto [found, is_new] = state_.flows.restored.try_emplace(flow_key(id.source, id.number), no_slot);
  if (!is_new) return state_.flows[found->second];
  Flow& flow = state_.flows.add();
  found->second = flow.slot;
  return flow;
}

void RoceSender::serialize(Port& port, Archive& archive) {
  Nic& there = nic(port);
  archive(there.num_unsent, there.num_over, there.last, there.wakes_at, there.wake, there.passes_next);
  services_.packets.serialize(there.acknowledgements, archive);
  std::uint64_t count = there.flows.size();
  archive(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    FlowId id{.source = port.node};
    if (!archive.reads()) id = there.flows[i]->id;
    archive(id);
    if (archive.reads()) there.flows.push_back(&restored_flow(id));
    Flow& flow = *there.flows[i];
    flow.id = id;
    serialize(flow, archive);
    if (archive.reads() && !flow.is_over) state_.observer->began(flow);
  }
}

void RoceSender::serialize(Flow& flow, Archive& archive) {
  const PacketRules& rules = services_.system.rules;
  archive(flow.ports, flow.port, flow.bytes, flow.next, flow.has_sent_empty, flow.is_over, flow.available, flow.rate,
          flow.timers, flow.known);
  if (archive.reads() && rules.control->make != nullptr) flow.control = rules.control->make(rules.parameters);
  if (flow.control) flow.control->serialize(archive);
  if (archive.reads() && rules.repeats()) flow.recovery = std::make_unique<Recovery>();
  if (flow.recovery) flow.recovery->serialize(archive);
}

}  // namespace orrery::network
