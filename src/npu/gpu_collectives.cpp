#include "gpu_collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "link_messaging.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/kind.hpp"

namespace orrery::npu {
namespace {

using gpu::Request;
using gpu::RequestKind;
using network::Message;

bool is_for_switch(RequestKind kind) { return kind == RequestKind::switch_load || kind == RequestKind::switch_store; }

/// Marks the parts of a sum, of which a switch makes one message: no block has this number.
constexpr std::uint32_t is_part = ~std::uint32_t{0};

/// Returns the request that a message carries.
Request request_of(const Message& message) {
  const Message::Request& its = message.request;
  return {.kind = static_cast<RequestKind>(its.kind),
          .wants_ack = its.wants_ack,
          .buffer = static_cast<gpu::Buffer>(its.buffer),
          .has_packets = its.has_packets,
          .from = message.step.member,
          .group = its.group,
          .block = message.step.id.service,
          .burst = message.step.id.step,
          .tag = its.tag,
          .offset = its.offset,
          .bytes = its.bytes,
          .held = its.held,
          .wire = message.size.count()};
}

/// Returns the message that carries a request, without its ends and its collective.
Message message_of(const Request& request, const gpu::Parameters& parameters) {
  const bool is_fair = parameters.arbitration == gpu::Arbitration::fair;
  const bool is_store = request.kind == RequestKind::store || request.kind == RequestKind::switch_store;
  return {.source = {},
          .destination = {},
          .size = Bytes(request.wire),
          .kind = Message::Kind::request,
          .step = {.group = {}, .id = {request.block, request.burst}},
          .request = {.passes_data = is_fair && gpu::is_control(request.kind) && !request.is_behind_data,
                      .wants_notice = is_store && request.wants_ack,
                      .has_packets = request.has_packets,
                      .wants_ack = request.wants_ack,
                      .kind = static_cast<std::uint8_t>(request.kind),
                      .buffer = static_cast<std::uint8_t>(request.buffer),
                      .tag = request.tag,
                      .group = request.group,
                      .offset = request.offset,
                      .bytes = request.bytes,
                      .held = request.held,
                      .after = gpu::delay_of(request.kind, parameters)}};
}

}  // namespace

/// The kernel that carries out the part of this NPU in a collective.
class GpuCollectives::Kernel final : public gpu::Simulation {
 public:
  /// What it is of.
  struct Collective {
    GroupId group;
    std::uint32_t ordinal = 0;
    NodeId node;
    communicator::Membership membership;
  };

  Kernel(GpuCollectives& owner, const Collective& collective, std::shared_ptr<const gpu::Program> program)
      : of(collective),
        last{owner.now_, owner.npu_->npu().id},
        owner_(owner),
        program_(std::move(program)),
        start_(owner.now_),
        device(*program_, collective.membership.position, owner.system_.options.parameters,
               owner.system_.options.granularity(), *this) {
    require_switches();
  }

  // Of gpu::Simulation.
  Time now() const override { return owner_.now_; }
  void resume_at(Time time, std::uint32_t, std::coroutine_handle<> coroutine) override {
    ++num_suspended;
    if (time <= owner_.now_) return owner_.soon_.push_back({slot, coroutine});
    owner_.schedule(time, EventKind::gpu_resume, slot, reinterpret_cast<std::uintptr_t>(coroutine.address()));
  }
  void send(Time time, const Request& request) override;
  Time holds(std::uint32_t gpu, std::uint32_t to, std::uint64_t wire) override {
    if (gpu == to) to = gpu == 0 ? 1 : 0;
    return owner_.system_.holds(member(gpu), member(to), wire);
  }
  Time move_memory(std::uint32_t, std::uint64_t bytes) override { return owner_.ports_.move(owner_.now_, bytes); }
  void finish(std::uint32_t, Time time) override {
    end = time;
    if (time > owner_.now_) owner_.schedule(time, EventKind::gpu_over, slot, 0);
  }
  void hold_sms(std::uint32_t, std::uint32_t sms) override {
    owner_.sms_ += sms - sms_;
    sms_ = sms;
  }

  gpu::KernelRecord record() const {
    return {owner_.npu_->npu().id, of.group, of.ordinal, static_cast<std::uint32_t>(gpu().blocks.size()), start_, end,
            device.all_stalls()};
  }
  /// Returns whether nothing will happen to it any more.
  bool is_quiet() const { return has_left && num_suspended == 0 && device.is_quiet(); }

  const Collective of;
  std::uint32_t slot = 0;
  std::uint32_t num_suspended = 0;  ///< coroutines that will be resumed at a time
  LastArrival last;                 ///< of the members, as far as their requests have told
  Time end = Time::max();
  bool has_left = false;

 private:
  const gpu::Gpu& gpu() const { return program_->gpus[of.membership.position]; }
  NpuId member(std::uint32_t position) const {
    return owner_.npu_->context().services.communicators.member(of.membership, position);
  }
  /// Returns a member of a group that is not this one.
  std::uint32_t beside(std::uint32_t group) const {
    const auto& members = program_->groups[group];
    return members[0] == of.membership.position ? members[1] : members[0];
  }
  void require_switches() const;

  GpuCollectives& owner_;
  std::shared_ptr<const gpu::Program> program_;
  Time start_;
  std::uint32_t sms_ = 0;

 public:
  gpu::Device device;
};

/// Throws Error (bad_input) if this GPU is in a group that no switch joins.
void GpuCollectives::Kernel::require_switches() const {
  const std::uint32_t self = of.membership.position;
  for (const auto& members : program_->groups) {
    if (!std::ranges::binary_search(members, self)) continue;
    for (const std::uint32_t other : members)
      if (other != self && !owner_.system_.are_at_a_switch(member(self), member(other)))
        throw Error(ErrorCode::bad_input, {.file = program_->file},
                    fmt::format("the switch adds up or multiplies data of GPUs {} and {}, which are NPUs {} and {}, "
                                "which no switch joins",
                                self, other, member(self).value(), member(other).value()),
                    "NPUs of one group of a Switch dimension");
  }
}

void GpuCollectives::Kernel::send(Time time, const Request& request) {
  Message message = message_of(request, owner_.system_.options.parameters);
  message.source = member(of.membership.position);
  message.node = of.node;
  message.last = last;
  message.step.group = of.group;
  message.step.ordinal = of.ordinal;
  message.step.member = of.membership.position;
  message.request.slot = slot;
  std::vector<NpuId> copies;
  if (is_for_switch(request.kind)) {
    const auto& members = program_->groups[request.group];
    for (const std::uint32_t one : members) copies.push_back(member(one));
    message.destination = message.request.beside = member(beside(request.group));
    message.request.members = static_cast<std::uint32_t>(members.size());
    message.combining = {1, message.size};
  } else {
    message.destination = member(request.to);
  }
  owner_.offer(time, request, message, std::move(copies));
}

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

bool GpuCollectives::join(Execution& npu, NodeId id, GroupId group, const communicator::Membership& membership,
                          Time now) {
  if (npu.npu().program->uses[npu.npu().program->use_of_node(id)].custom > 0) return false;
  const auto kind = collective::kind_of(npu.node(id).collective);
  const Bytes size(npu.node(id).size);
  auto program =
      system_.programs.find(kind, membership.members, collective::whole_buffer(kind, membership.members, size));
  if (!program) return false;
  npu_ = &npu;
  now_ = now;
  const std::uint32_t ordinal = npu.context().services.communicators.join(
      membership, {npu.npu().id, id, npu.npu().trace->id_of(id), kind, size, now, npu.schedule().is_recorded()});
  joined_[group] = ordinal + 1;
  const Kernel::Collective of{group, ordinal, id, membership};
  const std::uint32_t slot = put(std::make_unique<Kernel>(*this, of, std::move(program)));
  Kernel& kernel = *kernels_[slot];
  const auto is_of_it = [&](const Message& message) {
    return message.step.group == group && message.step.ordinal == ordinal;
  };
  for (const Message& message : early_) {
    if (!is_of_it(message)) continue;
    kernel.last.merge(message.last);
    kernel.device.take(request_of(message));
  }
  std::erase_if(early_, is_of_it);
  kernel.device.begin();
  go_on(slot, true);
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
    kernel->device.take(request_of(message));
    answer(message);
    return go_on(kernel->slot, false);
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
      --kernels_[slot]->num_suspended;
      std::coroutine_handle<>::from_address(
          reinterpret_cast<void*>(static_cast<std::uintptr_t>(event.detail)))  // NOLINT
          .resume();
      break;
    case EventKind::left: {
      const network::LeftRequest left = network::left_request(event.detail);
      kernels_[slot]->device.left(left.block, left.held);
      break;
    }
    case EventKind::gpu_over:
      break;
    case EventKind::gpu_take:
      return take(coming_.take(slot));
    default:  // offers are handed over in `settle`
      return;
  }
  go_on(slot, false);
}

/// Lets coroutines go on that asked to do so at once, then ends the kernel if it is over, and forgets it if nothing
/// will happen to it any more.
void GpuCollectives::go_on(std::uint32_t slot, bool is_joining) {
  while (!soon_.empty()) {
    const Resumption next = soon_.front();
    soon_.pop_front();
    --kernels_[next.slot]->num_suspended;
    next.coroutine.resume();
  }
  Kernel& kernel = *kernels_[slot];
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
  if (kernel.is_quiet()) kernels_[slot] = nullptr;
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
    if (kernel && !kernel->has_left && kernel->of.node == id) return kernel->device.waits();
  return {};
}

std::vector<gpu::RequestRecord> GpuCollectives::sent(NpuId self) const {
  std::vector<gpu::RequestRecord> records;
  for (const auto& [peer, counts] : counts_) records.push_back({self, peer, counts});
  return records;
}

}  // namespace orrery::npu
