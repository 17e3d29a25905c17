#pragma once

#include <cstdint>
#include <memory>

#include "orrery/base/quantity.hpp"
#include "orrery/memory/remote_memory.hpp"

namespace orrery::memory {

/// Memories with one bandwidth and one latency each. An access takes latency + size / bandwidth after its turn.
class SingleMemory : public RemoteMemoryModel {
 public:
  /// `npus_per_server`: of NPUs that share a memory; 0: each has its own.
  SingleMemory(const RemoteMemoryOptions& options, std::uint32_t npus_per_server);

  std::uint32_t npus_per_server() const override { return npus_per_server_; }
  Time access_time(Bytes size) const override;
  Time service_delay() const override;
  std::unique_ptr<SharedServer> make_server() const override;

 private:
  Bandwidth bandwidth_;
  double latency_ns_;
  Rounding rounding_;
  std::uint32_t npus_per_server_;
  bool orders_requests_;
  Time least_access_;
};

}  // namespace orrery::memory
