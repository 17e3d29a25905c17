#include "orrery/memory/single_memory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace orrery::memory {
namespace {

/// Serves NPUs in turn, those of one time in the order of NPU numbers, in which requests come.
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

/// Serves NPUs in turn, those of one time in the order of the events that led to their requests.
class OrderedTurnServer final : public SharedServer {
 public:
  explicit OrderedTurnServer(const SingleMemory& memory) : memory_(memory) {}

  std::optional<Time> access(const ServerAccess& access, const Answer&) override {
    const bool is_first = requests_.empty();
    for (const Requester& requester : access.requesters)
      requests_.push_back({access.place, requester, access.size, access.since});
    if (!is_first) return {};
    return access.since + gathering_time;
  }

  void close(Time, const Answer& answer) override {
    std::ranges::stable_sort(requests_, {}, [](const Request& it) { return std::pair(it.place, it.requester.npu); });
    for (const Request& request : requests_)
      answer(request.requester, request.since, server_.serve(request.since, memory_.access_time(request.size)));
    requests_.clear();
  }

  void serialize(Archive& archive) override { archive(server_, requests_); }

 private:
  struct Request {
    EventPlace place;
    Requester requester;
    Bytes size;
    Time since;
  };

  const SingleMemory& memory_;
  MemoryServer server_;
  std::vector<Request> requests_;  // of the present time
};

}  // namespace

SingleMemory::SingleMemory(const RemoteMemoryOptions& options, std::uint32_t npus_per_server)
    : bandwidth_(options.bandwidth),
      latency_ns_(options.latency_ns),
      rounding_(options.rounding),
      npus_per_server_(npus_per_server),
      orders_requests_(options.orders_requests) {}

Time SingleMemory::access_time(Bytes size) const {
  const Time time = duration_from_ns(latency_ns_, rounding_) + delay(0, size, bandwidth_, rounding_);
  return npus_per_server_ > 0 ? std::max(time, tick(rounding_)) : time;
}

/// A server that puts requests in order serves them a little after their time.
Time SingleMemory::service_delay() const {
  return access_time(Bytes(0)) - (orders_requests_ ? gathering_time : Time::zero());
}

std::unique_ptr<SharedServer> SingleMemory::make_server() const {
  if (orders_requests_) return std::make_unique<OrderedTurnServer>(*this);
  return std::make_unique<TurnServer>(*this);
}

}  // namespace orrery::memory
