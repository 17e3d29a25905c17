#include "messages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

/// From an event of a host to what its NPU learns by it.
constexpr Time answer_delay = Time::from_ps(1);
constexpr std::uint32_t first_port = 10000, num_ports = 50000, port_of_receivers = 100;

std::uint64_t key_of(const FlowId& flow) { return flow_key(flow.source, flow.number); }

}  // namespace

PacketMessages::PacketMessages(const PacketPlan& plan, const RankPart& part)
    : plan_(plan), part_(part), num_sent_(part.hosting.num_npus()) {
  of_node_ = place_nodes(plan.graph(), part.hosting.of_npu);
  announced_after_ = plan.least_relay_between(of_node_);
  devices_ = std::make_unique<PacketDevices>(
      plan.system(), PacketPart{part.kernel, part.hosting.here, of_node_, part.first_process, false, plan.recording()},
      static_cast<PacketUser&>(*this));
  if (plan.recording().flows) recorded_.resize(part.hosting.num_npus());
}

void PacketMessages::send(const Message& message, pdes::Event call) {
  call.target = LpId(part_.first_process.value() + message.source.value());
  call.kind = begin;
  call.node = messages_.put(message);
  part_.kernel.send(part_.hosting.here, call);
}

void PacketMessages::multicast(const Message& message, std::vector<NpuId> destinations, pdes::Event call) {
  call.target = LpId(part_.first_process.value() + message.source.value());
  call.kind = begin_reduction;
  call.detail = plan_.tree_of(message, std::move(destinations));
  call.node = messages_.put(message);
  part_.kernel.send(part_.hosting.here, call);
}

void PacketMessages::unpack(pdes::Event& event, std::span<const std::byte> bytes) {
  if (!has_message(event)) return devices_->unpack(event, bytes);
  Message message;
  ensure(bytes.size() == sizeof message, "a message of the network of wrong size");
  std::memcpy(&message, bytes.data(), sizeof message);
  event.node = messages_.put(message);
}

void PacketMessages::wake(const pdes::Event& event) {
  if (event.kind == begin) return begin_flow(messages_.take(event.node));
  if (event.kind == begin_reduction) return reduce(event.node, static_cast<std::uint32_t>(event.detail));
  const std::uint32_t source = messages_[event.node].source.value();
  incoming_.emplace(flow_key(source, static_cast<std::uint32_t>(event.detail)), event.node);
}

/// Begins an NPU's part in an operation of a tree. The collectives of a communicator have ordinals, and their services
/// numbers; with rendezvous a service has two steps.
void PacketMessages::reduce(std::uint32_t slot, std::uint32_t tree) {
  const Message& message = messages_[slot];
  const Message::Step& step = message.step;
  const std::uint64_t number =
      std::uint64_t{step.ordinal} << 32U | std::uint64_t{step.id.service} << 1U | (step.id.step & 1U);
  const std::uint32_t host = message.source.value();
  reducing_.emplace(ReductionKey{host, tree, number}, slot);
  devices_->reduce({.tree = tree,
                    .host = host,
                    .number = number,
                    .contributed = message.size.count(),
                    .bytes = message.combining.result.count(),
                    .last = message.last});
}

void PacketMessages::reduced(std::uint32_t tree, std::uint32_t host, std::uint64_t number, const LastArrival& last) {
  const auto found = reducing_.find({host, tree, number});
  ensure(found != reducing_.end(), "a reduction of a network that has not begun");
  const std::uint32_t slot = found->second;
  reducing_.erase(found);
  Message& message = messages_[slot];
  message.last = last;
  message.size = message.combining.result;
  tell_npu(host, static_cast<std::uint16_t>(Delivery::arrived), slot, 0);
}

/// Begins the flow of a message of an NPU here, and announces it to its destination.
void PacketMessages::begin_flow(const Message& message) {
  const std::uint32_t source = message.source.value(), destination = message.destination.value();
  const PacketRouter::FlowKey key{source, destination,
                                  (first_port + num_sent_[source] % num_ports) | port_of_receivers << 16U};
  if (plan_.system().router.port(source, key, part_.kernel.now()) == PacketRouter::no_way)
    throw unreachable(message.source, message.destination, part_.kernel.now());
  const FlowId id{source, destination, num_sent_[source]++};
  Receipt receipt{.is_wanted = message.kind == Message::Kind::data || message.step.wants_receipt};
  receipt.kind = static_cast<std::uint16_t>(message.step.wants_receipt ? Delivery::wake : Delivery::sent);
  receipt.node = message.node.value();
  receipt.detail = packed({message.step.id.service, message.step.receipt_step});
  if (receipt.is_wanted) outgoing_.emplace(key_of(id), receipt);
  const Rank to = of_node_[destination];
  if (to == part_.hosting.here) {
    incoming_.emplace(key_of(id), messages_.put(message));
  } else {
    pdes::Event announced = devices_->event(source, destination, part_.kernel.now() + announced_after_);
    announced.kind = announcement;
    announced.detail = id.number;
    part_.kernel.send(to, announced, std::as_bytes(std::span(&message, 1)));
  }
  if (!recorded_.empty()) record(id, message, key);
  const FlowWindows::Window window = plan_.window_of(key);
  devices_->send({.id = id,
                  .bytes = message.size.count(),
                  .ports = key.ports,
                  .window = window.bytes,
                  .round_trip = window.round_trip});
}

/// Keeps a message that begins.
void PacketMessages::record(const FlowId& id, const Message& message, const PacketRouter::FlowKey& key) {
  const bool is_of_collective =
      message.kind == Message::Kind::step_data || message.kind == Message::Kind::step_clear_to_send;
  const Time now = part_.kernel.now();
  recorded_[id.source].begun.push_back(
      {.source = id.source,
       .destination = id.destination,
       .number = id.number,
       .label = is_of_collective ? static_cast<std::int32_t>(message.step.group.value()) : FlowRecord::no_label,
       .bytes = message.size.count(),
       .start = now,
       .alone = time_alone(plan_.graph(), plan_.system().router, plan_.rules(), key, message.size.count(), now)});
}

PacketRecords PacketMessages::packet_records() const {
  PacketRecords all;
  for (const FlowRecords& of_npu : recorded_) {
    all.flows.begun.insert(all.flows.begun.end(), of_npu.begun.begin(), of_npu.begun.end());
    all.flows.arrivals.insert(all.flows.arrivals.end(), of_npu.arrivals.begin(), of_npu.arrivals.end());
  }
  devices_->collect([&](const Port& port) { return plan_.describe(port.node, port.number).link; }, all);
  for (ReductionRecord& record : all.reductions)
    record.node = device_number(plan_.graph(), static_cast<std::uint32_t>(record.node));
  return all;
}

void PacketMessages::received(const FlowId& flow) {
  if (!recorded_.empty())
    recorded_[flow.destination].arrivals.push_back({flow.source, flow.number, part_.kernel.now()});
  if (plan_.rules().completion == PacketCompletion::last_byte) deliver(flow);
}

void PacketMessages::acknowledged(const FlowId& flow) {
  const auto found = outgoing_.find(key_of(flow));
  if (found == outgoing_.end()) return;
  const Receipt receipt = found->second;
  outgoing_.erase(found);
  tell_npu(flow.source, receipt.kind, receipt.node, receipt.detail);
}

/// A host that repeats its last acknowledgement is told again.
void PacketMessages::told_acknowledged(const FlowId& flow) {
  if (!plan_.rules().tells_again() || incoming_.contains(key_of(flow))) deliver(flow);
}

/// Hands a message that is there to its NPU.
void PacketMessages::deliver(const FlowId& flow) {
  const auto found = incoming_.find(key_of(flow));
  ensure(found != incoming_.end(), "a message that has not been announced");
  const std::uint32_t slot = found->second;
  incoming_.erase(found);
  tell_npu(flow.destination, static_cast<std::uint16_t>(Delivery::arrived), slot, 0);
}

void PacketMessages::tell_npu(std::uint32_t npu, std::uint16_t kind, std::uint32_t node, std::uint64_t detail) {
  pdes::Event told = devices_->event(npu, npu, part_.kernel.now() + answer_delay);
  told.order = pdes::Event::make_order(pdes::Stage::client, told.source(), told.sequence());
  told.target = LpId(npu);
  told.kind = kind;
  told.node = node;
  told.detail = detail;
  part_.kernel.send(part_.hosting.here, told);
}

std::vector<LinkRecord> PacketMessages::records() const {
  std::vector<LinkRecord> records;
  devices_->for_each_port([&](const Port& port) {
    const PortStatistics& done = port.done;
    if (done.packets == 0) return;
    LinkRecord record = plan_.describe(port.node, port.number);
    record.statistics = {.messages = done.packets,
                         .bytes = Bytes(done.bytes),
                         .busy = done.busy,
                         .queueing = done.queueing,
                         .peak_queue = done.most_waiting};
    record.packets = {done.marks, done.drops, done.pauses, done.deepest_queue, done.trims, done.credit_wait};
    records.push_back(record);
  });
  std::ranges::sort(records, {}, &LinkRecord::link);
  return records;
}

std::vector<CreditWait> PacketMessages::credit_waits() const {
  std::vector<CreditWait> waits = devices_->credit_waits();
  for (CreditWait& wait : waits)
    for (std::int64_t* const device : {&wait.from, &wait.at, &wait.to})
      *device = device_number(plan_.graph(), static_cast<std::uint32_t>(*device));
  return waits;
}

std::string PacketMessages::find_leak() const {
  if (!incoming_.empty()) return "messages of the packet network have not come";
  return devices_->find_leak();
}

}  // namespace orrery::network
