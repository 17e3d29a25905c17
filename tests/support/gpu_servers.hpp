#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include "orrery/network/link_server.hpp"

// Requests at FIFO servers, one by one: what bursts of the GPU model stand for. Times are in ps.
namespace orrery::gpu_servers {

using Ps = std::int64_t;

/// Servers that requests pass one after the other.
class Tandem {
 public:
  Tandem(std::vector<Ps> service, std::vector<Ps> latency)
      : service_(std::move(service)), latency_(std::move(latency)), servers_(service_.size()) {}

  /// Lets a request that comes at `now` pass all servers, and returns when it is behind the last one. Requests pass in
  /// the order of the calls.
  Ps pass(Ps now) {
    for (std::size_t k = 0; k < servers_.size(); ++k) {
      const Time hold = Time::from_ps(service_[k]);
      now = (servers_[k].serve(Time::from_ps(now), hold, Bytes(1)) + hold).ps() + latency_[k];
    }
    return now;
  }
  /// Lets `lines` requests pass as one burst, cut through: it is at the next server one latency after its service
  /// begins. Returns when its last line is behind the last server.
  Ps pass_burst(Ps now, Ps lines) {
    Ps there = now, tail = now;
    for (std::size_t k = 0; k < servers_.size(); ++k) {
      const Ps begin = servers_[k].begins(Time::from_ps(there)).ps();
      // A line leaves a server only when it has come whole, so the burst is one line behind at each server.
      const Ps hold = std::max(lines * service_[k], tail - begin + (k == 0 ? 0 : service_[k]));
      servers_[k].serve(Time::from_ps(there), Time::from_ps(hold), Bytes(1));
      tail = begin + hold + latency_[k];
      there = begin + service_[k] + latency_[k];
    }
    return tail;
  }

 private:
  std::vector<Ps> service_, latency_;
  std::vector<network::LinkServer> servers_;
};

/// Returns when the last of `count` requests, `spacing` apart from `first` on, is behind the servers.
inline Ps run_of_requests(Tandem servers, Ps first, Ps count, Ps spacing) {
  Ps last = 0;
  for (Ps i = 0; i < count; ++i) last = servers.pass(first + i * spacing);
  return last;
}
/// The same as a formula (docs/gpu.md, Bursts, rule 1).
inline Ps run_formula(const std::vector<Ps>& service, const std::vector<Ps>& latency, Ps first, Ps count, Ps spacing) {
  Ps way = 0, slowest = spacing;
  for (std::size_t k = 0; k < service.size(); ++k) {
    way += service[k] + latency[k];
    slowest = std::max(slowest, service[k]);
  }
  return first + way + (count - 1) * slowest;
}

/// Returns when the last of `count` requests is complete, of which `window` are under way at a time.
inline Ps closed_loop(Tandem servers, Ps count, Ps window) {
  std::vector<Ps> done;
  for (Ps i = 0; i < count; ++i)
    done.push_back(servers.pass(i < window ? 0 : done[static_cast<std::size_t>(i - window)]));
  return done.back();
}
/// The same as a formula (rule 2).
inline Ps closed_loop_formula(const std::vector<Ps>& service, const std::vector<Ps>& latency, Ps count, Ps window) {
  Ps way = 0, slowest = 0;
  for (std::size_t k = 0; k < service.size(); ++k) {
    way += service[k] + latency[k];
    slowest = std::max(slowest, service[k]);
  }
  const Ps q = (count - 1) / window, r = (count - 1) % window;
  return way + q * std::max(way, window * slowest) + r * slowest;
}

/// Returns when the last of the requests of `streams` equal closed loops at one server is complete; ties round robin.
inline Ps symmetric_loops(Ps streams, Ps count, Ps window, Ps service, Ps latency) {
  Tandem server({service}, {latency});
  using Issue = std::tuple<Ps, Ps, Ps>;  // time, request, stream
  std::priority_queue<Issue, std::vector<Issue>, std::greater<>> issues;
  for (Ps i = 0; i < std::min(window, count); ++i)
    for (Ps s = 0; s < streams; ++s) issues.emplace(0, i, s);
  Ps last = 0;
  while (!issues.empty()) {
    const auto [time, request, stream] = issues.top();
    issues.pop();
    const Ps done = server.pass(time);
    last = std::max(last, done);
    if (request + window < count) issues.emplace(done, request + window, stream);
  }
  return last;
}
/// The same as a formula (rule 3).
inline Ps symmetric_formula(Ps streams, Ps count, Ps window, Ps service, Ps latency) {
  const Ps way = service + latency, q = (count - 1) / window, r = (count - 1) % window;
  return way + q * std::max(way, streams * window * service) + (r * streams + streams - 1) * service;
}

/// Returns when the last of `count` lines, `spacing` apart from `first` on, is behind the servers if bursts of `size`
/// lines pass, each handed over when its first line is ready or its last is ready less its hold and plus that of a line
/// (rule 4).
inline Ps stream_in_bursts(Tandem servers, Ps first, Ps count, Ps spacing, Ps size, Ps service) {
  Ps last = 0;
  for (Ps i = 0; i < count; i += size) {
    const Ps lines = std::min(size, count - i);
    const Ps ready = first + i * spacing, all_ready = first + (i + lines - 1) * spacing;
    last = servers.pass_burst(std::max(ready, all_ready - lines * service + service), lines);
  }
  return last;
}

}  // namespace orrery::gpu_servers
