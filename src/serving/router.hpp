#pragma once

#include <cstdint>
#include <deque>
#include <queue>
#include <span>
#include <vector>

#include "orrery/base/time.hpp"
#include "orrery/serving/options.hpp"
#include "orrery/serving/policy.hpp"
#include "orrery/serving/request.hpp"

namespace orrery::serving {

/// A request on its way to an instance.
struct Delivery {
  Time time;
  std::uint32_t request = 0, instance = 0;
  std::uint32_t home = 0;  ///< with `is_decode`: the instance of its prefill
  bool is_decode = false;
  Time first_token = {};    ///< with `is_decode`
  bool is_measured = true;  ///< it arrives in the window of the metrics
};

/// One thing that an instance reports at the end of a step.
struct Report {
  enum class Kind : std::uint8_t {
    finished,
    waiting,
    running,
    prefilling,  ///< the step that makes the first token of a request has been scheduled (TransferOptions::by_layer)
  };
  Kind kind = Kind::finished;
  std::uint32_t instance = 0;
  std::uint32_t value = 0;  ///< request, or number of those that wait or run
  Time scheduled;           ///< when the step was scheduled: reports of one time are in this order, then by instance
};

/// Decides which instance a request goes to, from what it has sent and what has been reported. It knows no kernel: the
/// caller hands it what happens in the order of time, reports before arrivals.
class Router {
 public:
  /// `roles`: [instances].
  Router(const Requests& requests, const RouterOptions& options, std::vector<Role> roles, std::uint32_t block,
         std::uint64_t seed, const Window& measure = {}, bool by_layer = false);

  /// Returns when the next request arrives; max() if none is known.
  Time next_arrival() const;
  /// Takes in the reports of one time, which it sorts.
  void take_reports(Time now, std::span<Report> reports);
  /// Sends the requests that arrive at this time, or before it.
  void take_arrivals(Time now);
  /// Returns what has been sent since the last call of `clear_deliveries`, in order.
  std::span<const Delivery> deliveries() const { return deliveries_; }
  void clear_deliveries() { deliveries_.clear(); }
  /// Returns the arrivals that were not known from the start: (request, time).
  std::span<const std::pair<std::uint32_t, Time>> late_arrivals() const { return late_arrivals_; }

 private:
  struct Arrival {
    Time time;
    std::uint64_t number = 0;
    std::uint32_t request = 0;

    friend bool operator>(const Arrival& a, const Arrival& b) {
      return a.time != b.time ? a.time > b.time : a.number > b.number;
    }
  };

  void send(const std::vector<std::uint32_t>& pool, std::uint64_t& turn, Delivery delivery);
  void take_finish(Time now, const Report& report);
  void send_to_decode(Time now, const Report& report);
  void take_end(Time now, std::uint32_t request);

  const Requests& requests_;
  RouterOptions options_;
  std::vector<Role> roles_;
  std::uint32_t block_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> prefill_pool_, decode_pool_;
  std::uint64_t prefill_turn_ = 0, decode_turn_ = 0;
  Window measure_;
  bool by_layer_;                  // decode instances are chosen when the last step of a prefill begins
  std::vector<bool> is_measured_;  // [requests] that have arrived
  std::vector<InstanceView> views_;
  std::vector<std::deque<Time>> under_way_;  // [instances] times of deliveries, if the policy looks at counts
  std::vector<std::uint32_t> order_;         // requests with a known arrival, in its order
  std::size_t next_ = 0;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> late_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> followers_;  // (request, the one after it), sorted
  std::vector<Delivery> deliveries_;
  std::vector<std::pair<std::uint32_t, Time>> late_arrivals_;
};

}  // namespace orrery::serving
