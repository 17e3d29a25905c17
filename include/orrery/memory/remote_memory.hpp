#pragma once

#include <cstdint>
#include <optional>

#include "orrery/base/ids.hpp"
#include "orrery/base/quantity.hpp"
#include "orrery/memory/hierarchical_pool.hpp"
#include "orrery/memory/options.hpp"

namespace orrery::memory {

/// After a request a hierarchical pool waits this long for others of the same moment.
constexpr Time gathering_time = Time::from_ps(1);

/// Remote memory as NPUs see it (docs/model.md, 9): which server an NPU's accesses go to, and what they cost there.
class RemoteMemory {
 public:
  RemoteMemory(RemoteMemoryOptions options, std::uint32_t num_npus);

  /// Servers that NPUs share; 0 if each NPU has its own memory, or none.
  std::uint32_t num_servers() const { return num_servers_; }
  /// The shared server of an NPU. Only if there are any.
  std::uint32_t server_of(NpuId npu) const;
  NpuId first_npu_of(std::uint32_t server) const;
  /// One of the NPUs that a server serves: its rank hosts the server. In turn, so that servers are spread over ranks.
  NpuId host_of(std::uint32_t server) const;
  std::uint32_t npus_per_server() const { return npus_per_server_; }

  /// Of one access, of a byte or more, that does not wait; at a shared server at least one tick. max() if it does not
  /// fit.
  Time access_time(Bytes size) const;
  /// The least time from a request to its answer, of a hierarchical pool from the end of its gathering time on.
  Time service_delay() const;
  RemoteMemoryKind kind() const { return options_.kind; }
  /// A memory that an NPU has for itself serves one access at a time.
  bool takes_turns() const { return options_.own_memory_takes_turns; }
  /// A hierarchical pool that nothing has passed; null if it is of another kind.
  const HierarchicalPool* hierarchy() const { return hierarchy_ ? &*hierarchy_ : nullptr; }

 private:
  RemoteMemoryOptions options_;
  std::uint32_t num_servers_ = 0;
  std::uint32_t npus_per_server_ = 0;
  std::optional<HierarchicalPool> hierarchy_;
};

/// One server: first come, first served.
class MemoryServer {
 public:
  /// Requests must come in the order of their times. Returns when the access is done.
  Time serve(Time request, Time access_time) {
    free_at_ = (request > free_at_ ? request : free_at_) + access_time;
    ++num_served_;
    return free_at_;
  }
  std::uint64_t num_served() const { return num_served_; }

 private:
  Time free_at_;
  std::uint64_t num_served_ = 0;
};

}  // namespace orrery::memory
