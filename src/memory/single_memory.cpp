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
      answer(requester, access.since, server_.serve(access.since, memory_.access_time(access.size)), 0);
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
      requests_.push_back({access.place, requester, access.size, whole_ns(access.since)});
    if (!is_first) return {};
    return access.since + gathering_time;
  }

  void close(Time now, const Answer& answer) override {
    std::ranges::stable_sort(requests_, {}, [](const Request& it) { return std::pair(it.place, it.requester.npu); });
    for (const Request& request : requests_) {
      const Time takes = memory_.access_time(request.size), done = server_.serve(request.since, takes);
      const Time begin = done - std::min(takes, done);
      in_service_ = (begin > request.since ? in_service_ : request.place).next(begin);
      answer(request.requester, request.since, std::max(done, now + gathering_time), in_service_.packed());
    }
    requests_.clear();
  }

  void serialize(Archive& archive) override { archive(server_, requests_, in_service_); }

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
  EventPlace in_service_;          // the end of the last access that has begun
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
  if (orders_requests_) return std::make_unique<OrderedTurnServer>(*this);
  return std::make_unique<TurnServer>(*this);
}

}  // namespace orrery::memory
