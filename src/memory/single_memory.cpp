#include "orrery/memory/single_memory.hpp"

#include <algorithm>

namespace orrery::memory {
namespace {

/// Serves NPUs in turn.
class TurnServer final : public SharedServer {
 public:
  explicit TurnServer(const SingleMemory& memory) : memory_(memory) {}

  std::optional<Time> access(const ServerAccess& access, const Answer& answer) override {
    for (const Requester& requester : access.requesters)
      answer(requester, access.since, server_.serve(access.since, memory_.access_time(access.size)));
    return {};
  }

  void serialize(Archive& archive) override { archive(server_); }

 private:
  const SingleMemory& memory_;
  MemoryServer server_;
};

}  // namespace

SingleMemory::SingleMemory(const RemoteMemoryOptions& options, std::uint32_t npus_per_server)
    : bandwidth_(options.bandwidth),
      latency_ns_(options.latency_ns),
      rounding_(options.rounding),
      npus_per_server_(npus_per_server) {}

Time SingleMemory::access_time(Bytes size) const {
  const Time time = duration_from_ns(latency_ns_, rounding_) + delay(0, size, bandwidth_, rounding_);
  return npus_per_server_ > 0 ? std::max(time, tick(rounding_)) : time;
}

std::unique_ptr<SharedServer> SingleMemory::make_server() const { return std::make_unique<TurnServer>(*this); }

}  // namespace orrery::memory
