#include "servers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::network::flit {
namespace {

// Kinds of events for a group.
constexpr std::uint16_t message_enters = 0, cycle_begins = 1, may_lead_away = 2;

}  // namespace

Servers::Servers(const ShapeLinks& links, const Regions& regions, const Options& options, const RankPart& part)
    : shape_(links), regions_(regions), part_(part), links_(links, options, part), place_(regions.num_groups()) {
  for (const Region& region : regions.all()) {
    for (std::uint32_t group = region.first_group; group < region.first_group + region.num_groups; ++group) {
      if (!part.hosting.is_here(region.npu_at(group, 0))) continue;
      place_[group] = static_cast<std::uint32_t>(groups_.size());
      groups_.push_back(
          std::make_unique<Group>(Group{&region, group, Routers(region.layout, region.dimensions.rules, group)}));
    }
  }
}

std::optional<std::uint32_t> Servers::group_of(LpId process) const {
  const std::uint32_t first = part_.first_process.value() + shape_.num_links();
  return process.value() < first ? std::nullopt : std::optional(process.value() - first);
}

Servers::Group& Servers::local(std::uint32_t group) { return *groups_[place_[group]]; }

LpId Servers::process_of(std::uint32_t group) const {
  return LpId(part_.first_process.value() + shape_.num_links() + group);
}

pdes::Event Servers::event(Group& group, Time time, pdes::Stage stage, LpId target) {
  return pdes::Event::make(time, stage, process_of(group.number), group.sequence++, target);
}

// ---- Events ----

void Servers::serve(const pdes::Event& event) {
  const auto number = group_of(event.target);
  if (!number) return links_.serve(event);
  Group& group = local(*number);
  if (event.kind == message_enters)
    enter(group, event);
  else if (event.kind == cycle_begins)
    due_.push_back(&group);
}

/// What is under way may lead away when a message does.
pdes::Scope Servers::scope(const pdes::Event& event) const {
  const auto number = group_of(event.target);
  if (!number || event.kind == message_enters) return links_.scope(event);
  return groups_[place_[*number]]->leaving > 0 ? pdes::Scope::anywhere : pdes::Scope::rank;
}

/// Cuts a message into packets, which its NPU injects from the present cycle on.
void Servers::enter(Group& group, const pdes::Event& event) {
  const Message message = links_.take(event);
  const FlitRules& rules = group.region->dimensions.rules;
  const std::uint64_t flits = std::max<std::uint64_t>(
      1, message.size.count() / rules.flit.count() + (message.size.count() % rules.flit.count() > 0 ? 1 : 0));
  const std::uint64_t packets = (flits + rules.packet - 1) / rules.packet;
  const std::uint32_t slot = group.messages.put({message, packets});
  if (message.scope == pdes::Scope::anywhere && group.leaving++ == 0) announce_departure(group, event.time);
  plan(group, event.time);
  const std::uint32_t from = group.region->position_of(message.source);
  const std::uint32_t to = group.region->position_of(message.destination);
  for (std::uint64_t sent = 0; sent < flits; sent += rules.packet)
    group.routers.inject(from, to, static_cast<std::uint32_t>(std::min<std::uint64_t>(rules.packet, flits - sent)),
                         slot);
}

/// Tells the kernel that the next cycle, whose event it has been given as one of this rank alone, may lead away.
void Servers::announce_departure(Group& group, Time now) {
  const Time next = group.region->cycle * static_cast<std::int64_t>(group.routers.cycle());
  if (!group.is_scheduled || next <= now) return;
  pdes::Event notice = event(group, next, pdes::Stage::server, process_of(group.number));
  notice.kind = may_lead_away;
  part_.kernel.send(part_.hosting.here, notice);
}

/// Wakes a group that rests, in the first cycle that does not begin before now.
void Servers::plan(Group& group, Time now) {
  if (group.is_scheduled) return;
  group.is_scheduled = true;
  const std::int64_t cycle = group.region->cycle.ps();
  group.routers.skip_to(std::max(group.routers.cycle(), static_cast<std::uint64_t>((now.ps() + cycle - 1) / cycle)));
  const Time next = group.region->cycle * static_cast<std::int64_t>(group.routers.cycle());
  if (next == now) return due_.push_back(&group);
  pdes::Event begin = event(group, next, pdes::Stage::server, process_of(group.number));
  begin.kind = cycle_begins;
  part_.kernel.send(part_.hosting.here, begin);
}

void Servers::settle() {
  links_.settle();
  std::ranges::sort(due_, {}, &Group::number);
  for (Group* const group : due_) step(*group);
  due_.clear();
}

/// Simulates a cycle. An NPU acts in the next one on what has come.
void Servers::step(Group& group) {
  group.routers.step();
  const Time next = group.region->cycle * static_cast<std::int64_t>(group.routers.cycle());
  for (const Routers::Delivered& packet : group.routers.delivered()) {
    const auto slot = static_cast<std::uint32_t>(packet.note);
    if (--group.messages[slot].packets > 0) continue;
    const Message message = group.messages.take(slot).message;
    if (message.scope == pdes::Scope::anywhere) --group.leaving;
    if (next == Time::max())
      keep_earliest(part_.overrun, {part_.kernel.now(), message.source, message.node});
    else
      pass_on(group, message, next);
  }
  group.is_scheduled = !group.routers.is_idle() && next < Time::max();
  if (!group.is_scheduled) return;
  pdes::Event begin = event(group, next, pdes::Stage::server, process_of(group.number));
  begin.kind = cycle_begins;
  part_.kernel.send(part_.hosting.here, begin);
}

/// Hands a message that has passed the group to the next dimension, or to its destination.
void Servers::pass_on(Group& group, const Message& message, Time there) {
  // All coordinates up to those of the group are right by now.
  const std::uint32_t behind = group.region->stride * group.region->layout.num_npus();
  const NpuId at(message.source.value() / behind * behind + message.destination.value() % behind);
  if (at == message.destination) return deliver(group, message, there);
  Message from_here = message;
  from_here.source = at;
  const topology::LinkId next = shape_.first(from_here, there);
  pdes::Event onward =
      event(group, there, pdes::Stage::server, LpId(part_.first_process.value() + shape_.process_of(next)));
  onward.kind = message_enters;
  hand_over(onward, message, part_.hosting.of_npu[shape_.find(next).owner.index()]);
}

/// Hands a message to its destination, and tells the source, if it waits for that.
void Servers::deliver(Group& group, const Message& message, Time there) {
  pdes::Event arrived = event(group, there, pdes::Stage::client, LpId(message.destination.value()));
  arrived.kind = static_cast<std::uint16_t>(Delivery::arrived);
  hand_over(arrived, message, part_.hosting.of_npu[message.destination.index()]);
  if (message.kind != Message::Kind::data && !message.step.wants_receipt) return;
  pdes::Event receipt = event(group, there, pdes::Stage::client, LpId(message.source.value()));
  receipt.kind = static_cast<std::uint16_t>(message.step.wants_receipt ? Delivery::wake : Delivery::sent);
  receipt.node = message.node.value();
  if (message.step.wants_receipt) receipt.detail = packed({message.step.id.service, message.step.receipt_step});
  part_.kernel.send(part_.hosting.of_npu[message.source.index()], receipt);
}

void Servers::hand_over(pdes::Event event, const Message& message, Rank to) {
  const auto bytes = std::as_bytes(std::span(&message, 1));
  if (to != part_.hosting.here) return part_.kernel.send(to, event, bytes);
  links_.unpack(event, bytes);
  part_.kernel.send(to, event);
}

// ---- Checkpoints ----

Rank Servers::host_of(LpId process) const {
  const auto group = group_of(process);
  if (!group) return links_.host_of(process);
  return part_.hosting.of_npu[regions_.of_group(*group).npu_at(*group, 0).index()];
}

std::vector<LpId> Servers::used() {
  std::vector<LpId> used = links_.used();
  for (const auto& group : groups_)
    if (group->sequence > 0) used.push_back(process_of(group->number));
  return used;
}

std::vector<std::byte> Servers::pack(const pdes::Event& event) const {
  if (group_of(event.target) && event.kind != message_enters) return {};
  return links_.pack(event);
}

void Servers::serialize(LpId process, Archive& archive) {
  const auto number = group_of(process);
  if (!number) return links_.serialize(process, archive);
  Group& group = local(*number);
  archive(group.routers, group.messages, group.sequence, group.is_scheduled);
  if (!archive.reads()) return;
  // A run that goes on may have other ranks, so any message may lead away.
  group.leaving = static_cast<std::uint32_t>(group.messages.in_use());
  std::vector<std::uint32_t> slots;
  group.messages.for_each([&](std::uint32_t slot, const Transit&) { slots.push_back(slot); });
  for (const std::uint32_t slot : slots) group.messages[slot].message.scope = pdes::Scope::anywhere;
}

// ---- Results ----

std::vector<FlitRecord> Servers::flit_records() const {
  std::vector<FlitRecord> records;
  for (const auto& group : groups_) {
    const Region& region = *group->region;
    const auto npu = [&](std::uint32_t position) { return region.npu_at(group->number, position).value(); };
    region.layout.for_each_link([&](std::uint32_t port, std::uint32_t from, std::uint32_t to, bool leads_to_npu) {
      const LinkCounts& link = group->routers.link(port);
      if (link.flits == 0) return;
      const auto kind = leads_to_npu ? FlitRecord::Kind::router_to_npu : FlitRecord::Kind::router_to_router;
      records.push_back({region.dimensions.first, npu(from), npu(to), kind, link.flits, link.starved,
                         group->routers.occupancy(port), link.peak, 0, region.cycle});
    });
    for (std::uint32_t position = 0; position < region.layout.num_npus(); ++position) {
      const SourceCounts& source = group->routers.source(position);
      if (source.flits == 0) continue;
      records.push_back({region.dimensions.first, npu(position), npu(position), FlitRecord::Kind::npu_to_router,
                         source.flits, source.starved, 0, 0, source.most_waiting, region.cycle});
    }
  }
  return records;
}

std::string Servers::find_leak() const {
  for (const auto& group : groups_)
    if (!group->routers.is_idle() || group->messages.in_use() > 0)
      return fmt::format("group {} of a dimension of flits still has {} messages", group->number,
                         group->messages.in_use());
  return {};
}

}  // namespace orrery::network::flit
