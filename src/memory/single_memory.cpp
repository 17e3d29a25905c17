#include "orrery/memory/single_memory.hpp"

#include <algorithm>
#include <tuple>
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
      answer(requester, access.since, server_.serve(access.since, memory_.access_time(access.size)), {});
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
      requests_.push_back({access.history, requester, access.size, whole_ns(access.since)});
    if (!is_first) return {};
    return access.since + gathering_time;
  }

  void close(Time now, const Answer& answer) override {
    std::ranges::stable_sort(requests_, [](const Request& one, const Request& other) {
      return std::tie(one.history, one.requester.npu) < std::tie(other.history, other.requester.npu);
    });
    for (const Request& request : requests_) {
      const Time takes = memory_.access_time(request.size), free = free_;
      free_ = server_.serve(request.since, takes);
      const Time begin = std::max(free, request.since);
      // An access that has waited begins because of the end of the one before. One that is asked for when that one ends
      // has waited if it is asked for before the memory is free.
      EventHistory history = request.history;
      if (free >= request.since && end_.is_known())
        if (EventHistory after = end_.next(begin, after_all); begin > request.since || history < after)
          history = std::move(after);
      end_ = history;
      answer(request.requester, request.since, std::max(free_, now + gathering_time), history);
    }
    requests_.clear();
  }

  void serialize(Archive& archive) override { archive(server_, requests_, free_, end_); }

 private:
  /// The memory is free when the NPU has begun what it begins at the end of its access.
  static constexpr std::uint32_t after_all = 1U << 29U;

  struct Request {
    EventHistory history;
    Requester requester;
    Bytes size;
    Time since;

    void serialize(Archive& archive) { archive(history, requester, size, since); }
  };

  const SingleMemory& memory_;
  MemoryServer server_;
  std::vector<Request> requests_;  // of the present time
  Time free_;                      // when the last access that has begun ends
  EventHistory end_;               // of this end
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
