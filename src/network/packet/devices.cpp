#include "devices.hpp"

#include <utility>

#include <fmt/format.h>

#include "recorder.hpp"

namespace orrery::network {

PacketDevices::PacketDevices(const PacketSystem& system, const PacketPart& part, PacketUser& user)
    : system_(system),
      events_(part, system.graph.num_nodes()),
      ports_(system_, events_, packets_),
      hops_(system_, events_, ports_),
      user_(user),
      transport_(system.rules.transport->make({system_, events_, packets_, ports_, hops_, user})),
      reductions_(system.trees == nullptr || system.trees->empty()
                      ? nullptr
                      : std::make_unique<Reductions>(NodeServices{system_, events_, packets_, ports_, hops_, user},
                                                     *transport_.queues)),
      switching_({system_, events_, packets_, ports_, hops_, user}, *transport_.queues, *transport_.hosts,
                 reductions_.get()),
      observer_(make_observer(part)) {
  ports_.connect(*transport_.queues, *transport_.hosts, *observer_);
}

std::unique_ptr<PortObserver> PacketDevices::make_observer(const PacketPart& part) {
  if (part.recording != PacketRecording{}) return std::make_unique<PacketRecorder>(part.recording, events_, ports_);
  if (reductions_) return std::make_unique<PortObserver>();
  auto made = transport_.hosts->make_fast_forward([this](const pdes::Event& event) { handle(event); });
  return made ? std::move(made) : std::make_unique<PortObserver>();
}

void PacketDevices::start() {
  for (const LinkFailure& failure : system_.failures) {
    if (failure.time == Time::zero()) continue;
    const PacketGraph::Link& link = system_.graph.links()[failure.link];
    for (const std::uint32_t node : {link.a, link.b}) {
      if (!is_here(node)) continue;
      pdes::Event failed = events_.make(node, node, failure.time);
      failed.kind = NodeEvents::link_failure;
      failed.node = failure.link;
      events_.send_here(failed);
    }
  }
}

void PacketDevices::handle(const pdes::Event& event) {
  if (event.kind >= NodeEvents::first_kind_of_user) return user_.wake(event);
  const std::uint32_t node = events_.node_of(event);
  switch (event.kind) {
    case NodeEvents::arrival:
      return switching_.arrive(node, event.reserved, event.node);
    case NodeEvents::transmission_end:
      return switching_.end_transmission(ports_.at(node, event.reserved));
    case NodeEvents::port_timer:
    case NodeEvents::flow_timer:
      return transport_.hosts->expire(event);
    case NodeEvents::link_failure:
      return switching_.fail_link(node, event.node);
    case NodeEvents::credit:
      return transport_.queues->take_credit(event);
    case NodeEvents::resumption:
      return observer_->resumes(event);
    default:
      if (event.kind == NodeEvents::addition) return reductions_->send_on(event);
      return user_.told_acknowledged({static_cast<std::uint32_t>(event.detail), node, event.node});
  }
}

void PacketDevices::prefetch(const pdes::Event& event) const {
  if (event.kind != NodeEvents::arrival) return;
  __builtin_prefetch(&packets_[event.node]);
  __builtin_prefetch(&ports_.at(events_.node_of(event), event.reserved));
}

void PacketDevices::collect(const std::function<std::uint32_t(const Port&)>& number_of, PacketRecords& records) const {
  for_each_port([&](const Port& port) { observer_->collect(port, number_of(port), records); });
  const auto connections = transport_.hosts->connections();
  records.connections.insert(records.connections.end(), connections.begin(), connections.end());
  if (reductions_) reductions_->collect(records.reductions);
}

std::string PacketDevices::find_leak() const {
  const std::size_t waiting =
      ports_.num_waiting() + transport_.hosts->num_waiting() + (reductions_ ? reductions_->num_waiting() : 0);
  if (packets_.size() != waiting)
    return fmt::format("{} packets are neither at a node nor on a link", packets_.size() - waiting);
  if (reductions_)
    if (const std::string leak = reductions_->find_leak(); !leak.empty()) return leak;
  return ports_.has_failed_link() ? std::string() : transport_.queues->find_leak(waiting > 0);
}

// ---- Checkpoints ----

std::vector<std::byte> PacketDevices::pack(const pdes::Event& event) const {
  return has_packet(event) ? packets_.saved(event.node) : transport_.hosts->pack(event);
}

void PacketDevices::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  if (!has_packet(event)) return transport_.hosts->unpack(event, bytes);
  event.node = packets_.put_bytes(bytes);
}

void PacketDevices::serialize(std::uint32_t node, Archive& archive) {
  events_.serialize(node, archive);
  ports_.serialize(node, archive);
  hops_.serialize(node, archive);
  for (std::uint32_t p = 0; p < system_.graph.ports(node).size(); ++p) {
    Port& port = ports_.at(node, p);
    observer_->serialize(port, archive);
    ports_.serialize(port, archive);
  }
  if (reductions_) reductions_->serialize(node, archive);
  if (system_.graph.node(node).is_host) transport_.hosts->serialize(node, archive);
}

}  // namespace orrery::network
