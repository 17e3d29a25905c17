#include "orrery/gpu/ports.hpp"

#include <algorithm>

namespace orrery::gpu {
namespace {

/// Serves what has been coming, and whose last byte comes now. Returns when that is through.
Time serve_stream(Time& free, Time now, Time takes) { return free = std::max(now, free + takes); }

bool has_data_to_memory(RequestKind kind) { return kind == RequestKind::store || kind == RequestKind::switch_store; }
bool is_answer(RequestKind kind) { return kind == RequestKind::answer || kind == RequestKind::switch_part; }

}  // namespace

Time Ports::memory_time(std::uint64_t bytes) const {
  return delay(0, Bytes(bytes), parameters_->memory_rate, Rounding::up_to_ps);
}
Time Ports::io_time(std::uint64_t bytes) const {
  return delay(0, Bytes(bytes), parameters_->io_rate, Rounding::up_to_ps);
}

Time Ports::move(Time now, std::uint64_t bytes) {
  if (parameters_->noc != Noc::ports || bytes == 0) return now;
  return memory_free_ = std::max(now, memory_free_) + memory_time(bytes);
}

Time Ports::come(Time now, const Request& request) {
  if (parameters_->noc != Noc::ports) return now;
  if (request.kind == RequestKind::load || request.kind == RequestKind::switch_load) {
    const Time begin = std::max(now, memory_free_), takes = memory_time(request.bytes), held = io_time(request.bytes);
    memory_free_ = begin + takes;
    return begin + std::max(takes - held, Time::zero());
  }
  const bool is_store = has_data_to_memory(request.kind);
  if (!is_store && !is_answer(request.kind)) return now;
  const Time there = serve_stream(in_free_, now, io_time(request.wire));
  return is_store ? serve_stream(memory_free_, there, memory_time(std::max(request.bytes, request.held))) : there;
}

Time Ports::leave(Time now, const Request& request, Time held) {
  const bool is_store = has_data_to_memory(request.kind);
  if (parameters_->noc != Noc::ports || (!is_store && !is_answer(request.kind))) return now;
  Time begin = now;
  if (is_store && !request.wants_ack) {  // a copy engine reads the memory itself
    begin = std::max(begin, memory_free_);
    memory_free_ = begin + memory_time(request.bytes);
  }
  begin = std::max(begin, out_free_);
  const Time takes = io_time(request.wire);
  out_free_ = begin + takes;
  return begin + std::max(takes - held, Time::zero());
}

}  // namespace orrery::gpu
