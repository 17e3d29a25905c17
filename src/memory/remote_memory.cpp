#include "orrery/memory/remote_memory.hpp"

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::memory {

RemoteMemory::RemoteMemory(RemoteMemoryOptions options, std::uint32_t num_npus) : options_(options) {
  options_.validate(num_npus);
  const bool is_hierarchical = options_.kind == RemoteMemoryKind::hierarchical_pool;
  if (options_.kind == RemoteMemoryKind::pool || is_hierarchical) npus_per_server_ = num_npus;
  if (options_.kind == RemoteMemoryKind::per_node) npus_per_server_ = options_.npus_per_node;
  if (npus_per_server_ > 0) num_servers_ = num_npus / npus_per_server_;
  if (is_hierarchical) hierarchy_.emplace(options_, num_npus, options_.rounding);
}

std::uint32_t RemoteMemory::server_of(NpuId npu) const {
  ensure(npus_per_server_ > 0, "no shared memory server");
  return npu.value() / npus_per_server_;
}

NpuId RemoteMemory::first_npu_of(std::uint32_t server) const { return NpuId(server * npus_per_server_); }

NpuId RemoteMemory::host_of(std::uint32_t server) const {
  return NpuId(first_npu_of(server).value() + server % npus_per_server_);
}

Time RemoteMemory::access_time(Bytes size) const {
  ensure(options_.kind != RemoteMemoryKind::none, "an access to remote memory that is not there");
  if (hierarchy_) return hierarchy_->alone(size);
  const Time latency = duration_from_ns(options_.latency_ns, options_.rounding);
  const Time time = latency + delay(0, size, options_.bandwidth, options_.rounding);
  return num_servers_ > 0 ? std::max(time, tick(options_.rounding)) : time;
}

Time RemoteMemory::service_delay() const {
  return hierarchy_ ? hierarchy_->alone(Bytes(1)) - gathering_time : access_time(Bytes(0));
}

}  // namespace orrery::memory
