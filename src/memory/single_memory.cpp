#include "single_memory.hpp"

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
      requests_.push_back({access.history, access.end, requester, access.size, whole_ns(access.since)});
    if (!is_first) return {};
    return access.since + gathering_time;
  }

  /// Serves the requests of a time in their order. Where an access ends at once, its NPU may ask again because of that,
  /// and what does not come before its end waits for this.
  std::optional<Time> close(Time now, const Answer& answer) override {
    std::ranges::stable_sort(requests_, [](const Request& one, const Request& other) {
      return std::tie(one.history, one.requester.npu) < std::tie(other.history, other.requester.npu);
    });
    const bool may_wait = now - whole_ns(now) < last_wait_within_ns;
    EventHistory first_end;  // of the accesses that end at once
    auto next = requests_.begin();
    for (; next != requests_.end(); ++next) {
      if (may_wait && first_end.is_known() && first_end < next->history.cause()) break;
      const auto [done, history, event] = serve(*next);
      if (next->requester.awaits_begin && done == next->since && (!first_end.is_known() || event < first_end))
        first_end = event;
      answer(next->requester, next->since, std::max(done, now + gathering_time), history);
    }
    requests_.erase(requests_.begin(), next);
    if (requests_.empty()) return {};
    return now + gathering_time + gathering_time;
  }

  void serialize(Archive& archive) override { archive(server_, requests_, free_, end_); }

 private:
  /// The memory is free when the NPU has begun what it begins at the end of its access.
  static constexpr std::uint32_t after_all = 1U << 29U;

  struct Request {
    EventHistory history, end;
    Requester requester;
    Bytes size;
    Time since;

    void serialize(Archive& archive) {
      archive(history, end, requester.npu, requester.node, requester.awaits_begin, size, since);
    }
  };

  struct Served {
    Time done;
    EventHistory history;  ///< of the end
    EventHistory event;    ///< of what ends the access: its own event, or the end of the access before it
  };

  /// Serves a request that comes next, and sets end_.
  Served serve(const Request& request) {
    const Time free = free_;
    free_ = server_.serve(request.since, memory_.access_time(request.size));
    const Time begin = std::max(free, request.since);
    // An access that has waited begins because of the end of the one before. One that is asked for when that one ends
    // has waited if it is asked for before the memory is free.
    if (free >= request.since && end_.is_known()) {
      const EventHistory after = end_.next(begin, after_all);
      if (begin > request.since || request.history < after) {
        // Its end may be part of an event that is not over when the access before ends.
        const bool is_in_store =
            begin == request.since && request.end.is_known() && request.end != request.history && !(request.end < end_);
        end_ = is_in_store ? request.end : after;
        return {free_, after, is_in_store ? request.end : after.cause()};
      }
    }
    end_ = request.end.is_known() ? request.end : request.history;
    return {free_, end_, end_};
  }

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
