#include "gpu_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::npu {

using gpu::Request;
using gpu::RequestKind;
using network::Message;

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

GpuCollectives::Kernel::Kernel(GpuCollectives& owner, const Collective& collective,
                               std::shared_ptr<const gpu::Program> program)
    : of(collective),
      last{owner.now_, owner.npu_->npu().id},
      owner_(owner),
      program_(std::move(program)),
      start_(owner.now_),
      device_(*program_, collective.membership.position, owner.system_.options.parameters,
              owner.system_.options.granularity(), *this) {
  require_switches();
}

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

/// Returns a member of a group that is not this one.
std::uint32_t GpuCollectives::Kernel::beside(std::uint32_t group) const {
  const auto& members = program_->groups[group];
  return members[0] == of.membership.position ? members[1] : members[0];
}

// ---- What happens to it ----

void GpuCollectives::Kernel::note(Kind kind, Time time, std::uint32_t number, std::uint64_t bytes) {
  if (owner_.system_.keeps_history && !is_repeating_) history_.entries.push_back({time, bytes, number, kind});
}

void GpuCollectives::Kernel::begin() {
  note(Kind::begin, now());
  device_.begin();
}

void GpuCollectives::Kernel::take(const Request& request) {
  note(Kind::take, now(), static_cast<std::uint32_t>(history_.requests.size()));
  if (owner_.system_.keeps_history && !is_repeating_) history_.requests.push_back(request);
  device_.take(request);
}

void GpuCollectives::Kernel::left(std::uint32_t block, std::uint64_t bytes) {
  note(Kind::left, now(), block, bytes);
  device_.left(block, bytes);
}

void GpuCollectives::Kernel::resume(std::uint32_t coroutine) {
  note(Kind::resume, now(), coroutine);
  suspended_.take(coroutine).resume();
}

void GpuCollectives::Kernel::go_on() {
  while (!soon_.empty()) {
    const std::uint32_t coroutine = soon_.front();
    soon_.pop_front();
    suspended_.take(coroutine).resume();
  }
}

// ---- What it asks for. What it has asked for before a checkpoint has been done ----

void GpuCollectives::Kernel::resume_at(Time time, std::uint32_t, std::coroutine_handle<> coroutine) {
  const std::uint32_t number = suspended_.put(coroutine);
  if (time <= now()) return soon_.push_back(number);
  if (!is_repeating_) owner_.schedule(time, EventKind::gpu_resume, slot, number);
}

void GpuCollectives::Kernel::send(Time time, const Request& request) {
  if (is_repeating_) return;
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

Time GpuCollectives::Kernel::holds(std::uint32_t gpu, std::uint32_t to, std::uint64_t wire) {
  if (gpu == to) to = gpu == 0 ? 1 : 0;
  return owner_.system_.holds(member(gpu), member(to), wire);
}

Time GpuCollectives::Kernel::move_memory(std::uint32_t, std::uint64_t bytes) {
  if (owner_.system_.options.parameters.noc != gpu::Noc::ports) return now();
  if (is_repeating_) {
    const KernelHistory::Entry& entry = repeated_.history->entries.at(repeated_.next++);
    ensure(entry.kind == Kind::moved, "thread blocks that do not repeat what they have done");
    return entry.time;
  }
  const Time through = owner_.ports_.move(owner_.now_, bytes);
  note(Kind::moved, through);
  return through;
}

void GpuCollectives::Kernel::finish(std::uint32_t, Time time) {
  end = time;
  if (time > now() && !is_repeating_) owner_.schedule(time, EventKind::gpu_over, slot, 0);
}

void GpuCollectives::Kernel::hold_sms(std::uint32_t, std::uint32_t sms) {
  owner_.sms_ += sms - sms_;
  sms_ = sms;
}

gpu::KernelRecord GpuCollectives::Kernel::record() const {
  return {owner_.npu_->npu().id, of.group, of.ordinal, static_cast<std::uint32_t>(gpu().blocks.size()), start_, end,
          device_.all_stalls()};
}

// ---- Checkpoints ----

/// Lets everything happen again that has happened to a kernel.
void GpuCollectives::Kernel::repeat(const KernelHistory& history) {
  is_repeating_ = true;
  repeated_ = {&history, 0, {}};
  while (repeated_.next < history.entries.size()) {
    const KernelHistory::Entry entry = history.entries[repeated_.next++];
    repeated_.time = entry.time;
    switch (entry.kind) {
      case Kind::begin:
        begin();
        break;
      case Kind::take:
        take(history.requests.at(entry.number));
        break;
      case Kind::left:
        left(entry.number, entry.bytes);
        break;
      case Kind::resume:
        resume(entry.number);
        break;
      case Kind::moved:
        ensure_failed("thread blocks that do not repeat what they have done", std::source_location::current());
    }
    go_on();
  }
  is_repeating_ = false;
}

void GpuCollectives::Kernel::serialize(Archive& archive) {
  archive(start_, last, history_);
  if (archive.reads()) {
    const KernelHistory history = std::move(history_);
    history_ = {};
    repeat(history);
    if (owner_.system_.keeps_history) history_ = history;
  }
  archive(end, has_left);
}

}  // namespace orrery::npu
