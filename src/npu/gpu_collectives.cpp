#include "gpu_collectives.hpp"

#include <algorithm>
#include <utility>

#include "gpu_kernel.hpp"
#include "link_messaging.hpp"
#include "orrery/collective/kind.hpp"

namespace orrery::npu {
namespace {

using gpu::Request;
using gpu::RequestKind;
using network::Message;

/// Marks the parts of a sum, of which a switch makes one message: no block has this number.
constexpr std::uint32_t is_part = ~std::uint32_t{0};

}  // namespace

GpuCollectives::GpuCollectives(GpuSystem& system) : system_(system), ports_(system.options.parameters) {}

GpuCollectives::~GpuCollectives() = default;

GpuCollectives::Kernel* GpuCollectives::find(GroupId group, std::uint32_t ordinal) const {
  for (const auto& kernel : kernels_)
    if (kernel && kernel->of.group == group && kernel->of.ordinal == ordinal) return kernel.get();
  return nullptr;
}

std::uint32_t GpuCollectives::put(std::unique_ptr<Kernel> kernel) {
  auto free = std::ranges::find_if(kernels_, [](const auto& known) { return known == nullptr; });
  if (free == kernels_.end()) free = kernels_.emplace(free);
  kernel->slot = static_cast<std::uint32_t>(free - kernels_.begin());
  *free = std::move(kernel);
  return (*free)->slot;
}

void GpuCollectives::schedule(Time time, EventKind kind, std::uint32_t slot, std::uint64_t detail) {
  npu_->context().services.kernel.schedule(
      npu_->make_event(time, pdes::Stage::client, npu_->npu().lp(), kind, slot, detail));
}

/// Returns the program that carries out the collective of a node; null if no plan does.
std::shared_ptr<const gpu::Program> GpuCollectives::program_of(NodeId id,
                                                               const communicator::Membership& membership) const {
  const auto kind = collective::kind_of(npu_->node(id).collective);
  const Bytes size(npu_->node(id).size);
  return system_.programs.find(kind, membership.members, collective::whole_buffer(kind, membership.members, size));
}

bool GpuCollectives::join(Execution& npu, NodeId id, GroupId group, const communicator::Membership& membership,
                          Time now) {
  if (npu.npu().program->uses[npu.npu().program->use_of_node(id)].custom > 0) return false;
  npu_ = &npu;
  now_ = now;
  auto program = program_of(id, membership);
  if (!program) return false;
  const auto kind = collective::kind_of(npu.node(id).collective);
  const Bytes size(npu.node(id).size);
  const std::uint32_t ordinal = npu.context().services.communicators.join(
      membership, {npu.npu().id, id, npu.npu().trace->id_of(id), kind, size, now, npu.schedule().is_recorded()});
  joined_[group] = ordinal + 1;
  const Kernel::Collective of{group, ordinal, id, membership};
  Kernel& kernel = *kernels_[put(std::make_unique<Kernel>(*this, of, std::move(program)))];
  const auto is_of_it = [&](const Message& message) {
    return message.step.group == group && message.step.ordinal == ordinal;
  };
  for (const Message& message : early_) {
    if (!is_of_it(message)) continue;
    kernel.last.merge(message.last);
    kernel.take(request_of(message));
  }
  std::erase_if(early_, is_of_it);
  kernel.begin();
  go_on(kernel, true);
  return true;
}

void GpuCollectives::arrive(Execution& npu, const Message& message, Time now) {
  npu_ = &npu;
  now_ = now;
  const Time there = ports_.come(now, request_of(message));
  if (there <= now) return take(message);
  schedule(there, EventKind::gpu_take, coming_.put(message), 0);
}

void GpuCollectives::take(const Message& message) {
  if (Kernel* const kernel = find(message.step.group, message.step.ordinal)) {
    if (!kernel->has_left) kernel->last.merge(message.last);
    kernel->take(request_of(message));
    answer(message);
    return go_on(*kernel, false);
  }
  const auto joined = joined_.find(message.step.group);
  const bool is_early = joined == joined_.end() || joined->second <= message.step.ordinal;
  const bool is_kept =
      message.request.has_packets || static_cast<RequestKind>(message.request.kind) == RequestKind::word;
  if (is_early && is_kept) early_.push_back(message);
  answer(message);
}

/// Answers a request of another GPU, or of this one by way of a switch.
void GpuCollectives::answer(const Message& asked) {
  const auto request = gpu::answer_to(request_of(asked), system_.options.parameters);
  if (!request) return;
  Message message = message_of(*request, system_.options.parameters);
  message.source = npu_->npu().id;
  message.destination = asked.source;
  message.last = asked.last;
  message.step.group = asked.step.group;
  message.step.ordinal = asked.step.ordinal;
  std::vector<NpuId> copies;
  if (request->kind == RequestKind::switch_part) {
    message.combining = {asked.request.members, message.size};
    message.step.id = {is_part, request->tag};
    copies.push_back(asked.source);
  } else if (asked.source == message.source) {
    message.combining = {1, message.size};
    copies.push_back(asked.source);
  }
  if (asked.source == message.source) message.destination = asked.request.beside;
  offer(now_, *request, message, std::move(copies));
}

/// Takes note of what is handed to its first link at `time`, now or later.
void GpuCollectives::offer(Time time, const Request& request, Message message, std::vector<NpuId> copies) {
  const bool is_for_switch_only = is_for_switch(request.kind) || request.kind == RequestKind::switch_part;
  gpu::RequestCounts& counts =
      counts_[is_for_switch_only ? gpu::RequestRecord::to_switch : std::int64_t{message.destination.value()}];
  const auto kind = static_cast<std::size_t>(request.kind);
  const std::uint64_t line = system_.options.parameters.line;
  counts.requests[kind] += request.bytes > 0 ? (request.bytes + line - 1) / line : 1;
  counts.wire[kind] += request.wire;
  const auto [offers, is_new] = offers_.try_emplace(time);
  if (is_new && time > now_) schedule(time, EventKind::gpu_offer, 0, 0);
  offers->second.push_back({message, std::move(copies), request.burst, request.block, request});
}

void GpuCollectives::handle(Execution& npu, const pdes::Event& event) {
  npu_ = &npu;
  now_ = event.time;
  const std::uint32_t slot = event.node;
  switch (static_cast<EventKind>(event.kind)) {
    case EventKind::gpu_resume:
      kernels_[slot]->resume(static_cast<std::uint32_t>(event.detail));
      break;
    case EventKind::left: {
      const network::LeftRequest left = network::left_request(event.detail);
      kernels_[slot]->left(left.block, left.held);
      break;
    }
    case EventKind::gpu_over:
      break;
    case EventKind::gpu_take:
      return take(coming_.take(slot));
    default:  // offers are handed over in `settle`
      return;
  }
  go_on(*kernels_[slot], false);
}

/// Lets coroutines go on that asked to do so at once, then ends the kernel if it is over, and forgets it if nothing
/// will happen to it any more.
void GpuCollectives::go_on(Kernel& kernel, bool is_joining) {
  kernel.go_on();
  if (!kernel.has_left && kernel.end <= now_) {
    kernel.has_left = true;
    if (npu_->schedule().is_recorded()) system_.kernels.push_back(kernel.record());
    npu_->context().services.communicators.leave(kernel.of.membership, kernel.of.ordinal, now_);
    npu_->running(kernel.of.node).last = kernel.last;
    if (is_joining)
      npu_->end_at(kernel.of.node, now_, now_);
    else
      npu_->complete(kernel.of.node, now_);
  }
  if (kernel.is_quiet()) kernels_[kernel.slot] = nullptr;
}

/// Lets a request pass the ports of this GPU. Returns whether it is at its first link now; else it is offered again.
bool GpuCollectives::leave(Offer& offer) {
  if (system_.options.parameters.noc == gpu::Noc::none || std::exchange(offer.has_left, true)) return true;
  const Time held = system_.holds(offer.message.source, offer.message.destination, offer.request.wire);
  const Time there = ports_.leave(now_, offer.request, held);
  if (there <= now_) return true;
  const auto [offers, is_new] = offers_.try_emplace(there);
  if (is_new) schedule(there, EventKind::gpu_offer, 0, 0);
  offers->second.push_back(std::move(offer));
  return false;
}

void GpuCollectives::settle(Execution& npu, Time now) {
  npu_ = &npu;
  now_ = now;
  if (offers_.empty() || offers_.begin()->first > now) return;
  std::vector<Offer> offers = std::move(offers_.begin()->second);
  offers_.erase(offers_.begin());
  std::ranges::stable_sort(offers, {}, [](const Offer& offer) { return std::pair(offer.burst, offer.block); });
  const Services& services = npu.context().services;
  for (Offer& offer : offers) {
    if (!leave(offer)) continue;
    const Message& message = offer.message;
    npu.accounting().count_sent(message.node, now, message.size);
    services.network.count_way(message.source, message.destination, message.size);
    if (offer.copies.empty())
      services.links->send(message, link_call(npu, now));
    else
      services.links->multicast(message, std::move(offer.copies), link_call(npu, now));
  }
}

std::vector<std::string> GpuCollectives::waits(NodeId id) const {
  for (const auto& kernel : kernels_)
    if (kernel && !kernel->has_left && kernel->of.node == id) return kernel->waits();
  return {};
}

void GpuCollectives::serialize(Execution& npu, const std::vector<communicator::Membership>& memberships,
                               Archive& archive) {
  npu_ = &npu;
  archive(joined_, early_, offers_, counts_, ports_, coming_);
  std::uint64_t count = kernels_.size();
  archive(count);
  kernels_.resize(count);
  for (auto& kernel : kernels_) serialize_kernel(kernel, memberships, archive);
}

void GpuCollectives::serialize_kernel(std::unique_ptr<Kernel>& kernel,
                                      const std::vector<communicator::Membership>& memberships, Archive& archive) {
  bool is_there = kernel != nullptr;
  archive(is_there);
  if (!is_there) return;
  std::uint32_t ordinal = kernel ? kernel->of.ordinal : 0;
  NodeId id = kernel ? kernel->of.node : NodeId();
  archive(ordinal, id);
  if (archive.reads()) {
    const std::uint32_t use = npu_->npu().program->use_of_node(id);
    const auto slot = static_cast<std::uint32_t>(&kernel - kernels_.data());
    kernel = std::make_unique<Kernel>(*this, Kernel::Collective{npu_->npu().groups[use], ordinal, id, memberships[use]},
                                      program_of(id, memberships[use]));
    kernel->slot = slot;
  }
  archive(*kernel);
}

std::vector<gpu::RequestRecord> GpuCollectives::sent(NpuId self) const {
  std::vector<gpu::RequestRecord> records;
  for (const auto& [peer, counts] : counts_) records.push_back({self, peer, counts});
  return records;
}

}  // namespace orrery::npu
