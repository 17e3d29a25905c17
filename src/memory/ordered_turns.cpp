#include "ordered_turns.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace orrery::memory {
namespace {

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

  /// Serves the requests of a time in their order. Where an access ends at once, its NPU may ask again because of that,
  /// and what does not come before its end waits for this.
  std::optional<Time> close(Time now, const Answer& answer) override {
    std::ranges::stable_sort(requests_, [](const Request& one, const Request& other) {
      return std::tie(one.place.access, one.requester.npu) < std::tie(other.place.access, other.requester.npu);
    });
    const bool may_wait = now - whole_ns(now) < last_wait_within_ns;
    EventPlace first_end;  // of the accesses that end at once
    auto next = requests_.begin();
    for (; next != requests_.end(); ++next) {
      if (may_wait && first_end.is_known() && first_end < next->place.access.cause()) break;
      const auto [done, end, event] = serve(*next);
      if (next->requester.awaits_begin && done == next->since && (!first_end.is_known() || event < first_end))
        first_end = event;
      answer(next->requester, next->since, std::max(done, now + gathering_time), end);
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
    AccessPlace place;
    Requester requester;
    Bytes size;
    Time since;

    void serialize(Archive& archive) {
      archive(place, requester.npu, requester.node, requester.awaits_begin, size, since);
    }
  };

  struct Served {
    Time done;
    EventPlace end;    ///< place of the end
    EventPlace event;  ///< place of what ends the access: its own event, or the end of the access before it
  };

  /// Serves a request that comes next, and sets end_.
  Served serve(const Request& request) {
    const Time free = free_;
    free_ = server_.serve(request.since, memory_.access_time(request.size));
    const Time begin = std::max(free, request.since);
    // An access that has waited begins because of the end of the one before. One that is asked for when that one ends
    // has waited if it is asked for before the memory is free.
    if (free >= request.since && end_.is_known()) {
      const EventPlace after = end_.next(begin, after_all);
      if (begin > request.since || request.place.access < after) {
        // Its end may be part of an event that is not over when the access before ends.
        const bool is_in_store = begin == request.since && request.place.end.is_known() &&
                                 request.place.end != request.place.access && !(request.place.end < end_);
        end_ = is_in_store ? request.place.end : after;
        return {free_, after, is_in_store ? request.place.end : after.cause()};
      }
    }
    end_ = request.place.end.is_known() ? request.place.end : request.place.access;
    return {free_, end_, end_};
  }

  const SingleMemory& memory_;
  MemoryServer server_;
  std::vector<Request> requests_;  // of the present time
  Time free_;                      // when the last access that has begun ends
  EventPlace end_;                 // of this end
};

}  // namespace

std::unique_ptr<SharedServer> make_ordered_turns(const SingleMemory& memory) {
  return std::make_unique<OrderedTurnServer>(memory);
}

}  // namespace orrery::memory
