#include "orrery/memory/remote_memory.hpp"

#include <source_location>

#include "orrery/base/error.hpp"

namespace orrery::memory {

std::optional<Time> SharedServer::close(Time, const Answer&) {
  ensure_failed("a memory server that keeps no accesses", std::source_location::current());
}

std::unique_ptr<SharedServer> RemoteMemoryModel::make_server() const {
  ensure_failed("a server of a memory that NPUs do not share", std::source_location::current());
}

RemoteMemory::RemoteMemory(const RemoteMemoryOptions& options, std::uint32_t num_npus)
    : kind_(options.kind), takes_turns_(options.own_memory_takes_turns), orders_requests_(options.orders_requests) {
  options.validate(num_npus);
  model_ = kind_->make(options, num_npus);
  if (npus_per_server() == 0) return;
  num_servers_ = num_npus / npus_per_server();
  may_take_no_time_ = access_time(Bytes(1)) == Time::zero();
}

std::uint32_t RemoteMemory::server_of(NpuId npu) const {
  ensure(num_servers_ > 0, "no shared memory server");
  return npu.value() / npus_per_server();
}

NpuId RemoteMemory::first_npu_of(std::uint32_t server) const { return NpuId(server * npus_per_server()); }

NpuId RemoteMemory::host_of(std::uint32_t server) const {
  return NpuId(first_npu_of(server).value() + server % npus_per_server());
}

}  // namespace orrery::memory
