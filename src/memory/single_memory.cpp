#include "single_memory.hpp"

#include <algorithm>

#include "ordered_turns.hpp"

namespace orrery::memory {
namespace {

/// Serves NPUs in turn, those of one time in the order of NPU numbers, in which requests come.
class TurnServer final : public SharedServer {
 public:
  explicit TurnServer(const SingleMemory& memory) : memory_(memory) {}

  std::optional<Time> access(const ServerAccess& access, const Answer& answer) override {
    for (const Requester& requester : access.requesters)
      answer(requester, access.since, server_.serve(access.since, memory_.access_time(access.size)), {});
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
      npus_per_server_(npus_per_server),
      orders_requests_(options.orders_requests),
      least_access_(npus_per_server == 0 || (options.orders_requests && options.may_take_no_time) ? Time::zero()
                                                                                                  : tick(rounding_)) {}

Time SingleMemory::access_time(Bytes size) const {
  return std::max(duration_from_ns(latency_ns_, rounding_) + delay(0, size, bandwidth_, rounding_), least_access_);
}

/// A server that puts requests in order serves them a little after their time, and answers after that.
Time SingleMemory::service_delay() const {
  if (!orders_requests_) return access_time(Bytes(0));
  return std::max(access_time(Bytes(0)) - gathering_time, gathering_time);
}

std::unique_ptr<SharedServer> SingleMemory::make_server() const {
  if (orders_requests_) return make_ordered_turns(*this);
  return std::make_unique<TurnServer>(*this);
}

}  // namespace orrery::memory
