#include "flow_model.hpp"

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

/// The kind of the event with which a flow begins. `node` is the flow.
constexpr std::uint16_t flow_begins = NodeEvents::first_kind_of_user;
/// The kind of the event with which a reduction begins at a host. `node` is the reduction, `detail` the index of the
/// host.
constexpr std::uint16_t reduction_begins = flow_begins + 1;

}  // namespace

FlowModel::FlowModel(const FlowScenario& scenario, const PacketRouter& router, std::span<const Rank> of_node, Rank here,
                     EventOrder order)
    : scenario_(scenario),
      router_(router),
      of_node_(of_node),
      here_(here),
      order_(order),
      followers_(scenario.flows.size()),
      num_awaited_(scenario.flows.size()),
      times_(scenario.flows.size()),
      reductions_(scenario),
      is_told_(scenario.flows.size()) {
  for (std::uint32_t i = 0; i < scenario.flows.size(); ++i) {
    num_awaited_[i] = static_cast<std::uint32_t>(scenario.flows[i].after.size());
    for (const std::uint32_t before : scenario.flows[i].after) followers_[before].push_back(i);
  }
}

void FlowModel::start(pdes::Scheduler& kernel) {
  kernel_ = &kernel;
  devices_ = std::make_unique<PacketDevices>(
      PacketSystem{scenario_.graph, scenario_.rules, router_, scenario_.failures, &reductions_.trees()},
      PacketPart{kernel, here_, of_node_, LpId(0), order_ == EventOrder::by_scheduling, scenario_.recording},
      static_cast<PacketUser&>(*this));
  devices_->start();
  for (std::uint32_t i = 0; i < scenario_.flows.size(); ++i) {
    const FlowSpec& flow = scenario_.flows[i];
    if (!devices_->is_here(flow.source) || !flow.after.empty()) continue;
    pdes::Event event = devices_->event(flow.source, flow.source, flow.start);
    event.kind = flow_begins;
    event.node = i;
    kernel.send(here_, event);
  }
  for (std::uint32_t i = 0; i < scenario_.reductions.size(); ++i) {
    const ReductionSpec& reduction = scenario_.reductions[i];
    for (std::size_t h = 0; h < reduction.hosts.size(); ++h) {
      if (!devices_->is_here(reduction.hosts[h])) continue;
      pdes::Event event = devices_->event(reduction.hosts[h], reduction.hosts[h], reduction.starts[h]);
      event.kind = reduction_begins;
      event.node = i;
      event.detail = h;
      kernel.send(here_, event);
    }
  }
}

void FlowModel::wake(const pdes::Event& event) {
  if (event.kind == flow_begins) return begin(event.node);
  devices_->reduce(reductions_.begin(event.node, event.detail));
}

void FlowModel::begin(std::uint32_t i) {
  const FlowSpec& flow = scenario_.flows[i];
  times_[i].start = kernel_->now();
  devices_->send({.id = {flow.source, flow.destination, i},
                  .bytes = flow.bytes,
                  .ports = flow.ports,
                  .window = flow.window,
                  .round_trip = flow.round_trip,
                  .connection = flow.connection});
}

/// Begins the flows that waited for this one alone, or schedules that.
void FlowModel::end(std::uint32_t i) {
  for (const std::uint32_t next : followers_[i]) {
    if (--num_awaited_[next] > 0) continue;
    const FlowSpec& flow = scenario_.flows[next];
    if (flow.start == Time::zero() && order_ == EventOrder::by_system) {
      begin(next);
      continue;
    }
    pdes::Event event = devices_->event(flow.source, flow.source, kernel_->now() + flow.start);
    event.kind = flow_begins;
    event.node = next;
    kernel_->send(here_, event);
  }
}

void FlowModel::received(const FlowId& flow) {
  times_[flow.number].received = kernel_->now();
  if (scenario_.rules.completion == PacketCompletion::last_byte) end(flow.number);
}

void FlowModel::acknowledged(const FlowId& flow) {
  times_[flow.number].acknowledged = kernel_->now();
  if (scenario_.rules.completion == PacketCompletion::acknowledged && order_ == EventOrder::by_scheduling)
    end(flow.number);
}

/// A host that repeats its last acknowledgement is told again.
void FlowModel::told_acknowledged(const FlowId& flow) {
  if (!is_told_[flow.number]) end(flow.number);
  is_told_[flow.number] = true;
}

void FlowModel::reduced(std::uint32_t, std::uint32_t, std::uint64_t number, const LastArrival&) {
  reductions_.end(number, kernel_->now());
}

bool FlowModel::admit(pdes::Event&) {
  ensure_failed("a network of flows has servers only", std::source_location::current());
}

void FlowModel::receive(Rank, std::span<const std::byte>) {
  ensure_failed("a network of flows posts nothing", std::source_location::current());
}

std::string FlowModel::status() const {
  std::size_t ended = 0;
  for (const FlowTimes& times : times_) ended += times.received != FlowTimes::never ? 1 : 0;
  return fmt::format("{} of {} flows have come to hosts of this rank", ended, times_.size());
}

}  // namespace orrery::network
