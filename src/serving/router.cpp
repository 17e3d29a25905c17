#include "router.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace orrery::serving {

Router::Router(const Requests& requests, const RouterOptions& options, std::vector<Role> roles, std::uint32_t block,
               std::uint64_t seed, const Window& measure, bool by_layer)
    : requests_(requests),
      options_(options),
      roles_(std::move(roles)),
      block_(block),
      seed_(seed),
      measure_(measure),
      by_layer_(by_layer),
      is_measured_(requests.size()),
      views_(roles_.size()),
      under_way_(roles_.size()) {
  for (std::uint32_t i = 0; i < roles_.size(); ++i)
    (roles_[i] == Role::decode ? decode_pool_ : prefill_pool_).push_back(i);
  for (std::uint32_t id = 0; id < requests.size(); ++id)
    if (requests[id].after == Request::nobody)
      order_.push_back(id);
    else
      followers_.emplace_back(requests[id].after, id);
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) { return requests[a].arrival < requests[b].arrival; };
  if (!std::ranges::is_sorted(order_, earlier)) std::ranges::stable_sort(order_, earlier);
  std::ranges::stable_sort(followers_);
}

Time Router::next_arrival() const {
  const Time early = next_ < order_.size() ? requests_[order_[next_]].arrival : Time::max();
  return late_.empty() ? early : std::min(early, late_.top().time);
}

/// Chooses an instance of the pool and notes what it is sent.
void Router::send(const std::vector<std::uint32_t>& pool, std::uint64_t& turn, Delivery delivery) {
  const Policy& policy = *options_.policy;
  const std::uint32_t request = delivery.request;
  delivery.is_measured = is_measured_[request];
  delivery.instance = pool[policy.choose({requests_, request, pool, views_, turn++, block_, seed_})];
  deliveries_.push_back(delivery);
  InstanceView& view = views_[delivery.instance];
  ++view.open_requests;
  view.open_tokens += requests_[request].prompt;
  if (policy.looks_at_counts) {
    under_way_[delivery.instance].push_back(delivery.time);
    ++view.under_way;
  }
  if (!policy.looks_at_keys) return;
  for (std::uint32_t i = 0; i < requests_.num_keys(request, block_); ++i)
    view.keys.insert(*requests_.key(request, i, block_));
}

void Router::take_arrivals(Time now) {
  while (next_arrival() <= now) {
    const bool is_late =
        next_ == order_.size() || (!late_.empty() && late_.top().time < requests_[order_[next_]].arrival);
    const Time late_arrival = is_late ? late_.top().time : Time::max();
    const std::uint32_t request = is_late ? late_.top().request : order_[next_];
    if (is_late)
      late_.pop();
    else
      ++next_;
    is_measured_[request] = measure_.holds(is_late ? late_arrival : requests_[request].arrival);
    send(prefill_pool_, prefill_turn_, {.time = now + options_.dispatch, .request = request});
  }
}

void Router::take_reports(Time now, std::span<Report> reports) {
  std::ranges::stable_sort(reports, {}, [](const Report& r) { return std::pair(r.scheduled, r.instance); });
  for (const Report& report : reports) {
    InstanceView& view = views_[report.instance];
    switch (report.kind) {
      case Report::Kind::finished:
        take_finish(now, report);
        break;
      case Report::Kind::waiting: {
        view.waiting = report.value;
        auto& times = under_way_[report.instance];
        while (!times.empty() && times.front() <= now - options_.report) times.pop_front();
        view.under_way = static_cast<std::uint32_t>(times.size());
        break;
      }
      case Report::Kind::prefilling:
        send_to_decode(now, report);
        break;
      case Report::Kind::running:
        view.running = report.value;
        break;
    }
  }
}

void Router::take_finish(Time now, const Report& report) {
  const Request& request = requests_[report.value];
  InstanceView& view = views_[report.instance];
  --view.open_requests;
  view.open_tokens -= request.prompt;
  if (roles_[report.instance] != Role::prefill || request.output == 1) {
    take_end(now, report.value);
    return;
  }
  if (!by_layer_) send_to_decode(now, report);
}

void Router::send_to_decode(Time now, const Report& report) {
  send(decode_pool_, decode_turn_,
       {.time = now + options_.dispatch,
        .request = report.value,
        .home = report.instance,
        .is_decode = true,
        .first_token = now - options_.report});
}

/// Lets the requests arrive that wait for this end.
void Router::take_end(Time now, std::uint32_t request) {
  const auto first = std::ranges::lower_bound(followers_, std::pair(request, 0U));
  for (auto it = first; it != followers_.end() && it->first == request; ++it) {
    const Time arrival = now + requests_[it->second].think;
    late_.push({arrival, late_arrivals_.size(), it->second});
    late_arrivals_.emplace_back(it->second, arrival);
  }
}

}  // namespace orrery::serving
