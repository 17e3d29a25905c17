#include "orrery/network/graph_delays.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/network/packet_router.hpp"

namespace orrery::network {
namespace {

/// Follows the route from one host to another and lets `delay` cover it.
void cover(const GivenGraph& given, const PacketRouter& router, std::uint32_t from, std::uint32_t to,
           GraphDelay& delay) {
  Time latency;
  std::uint32_t node = from;
  while (node != to) {
    const std::uint16_t number = router.port(node, {from, to, 0}, Time::zero());
    if (number == PacketRouter::no_way)
      throw Error(ErrorCode::bad_input, fmt::format("system.network.graph: no working links lead from host {} to host "
                                                    "{}; expected a way between all NPUs. Hosts do not forward.",
                                                    from, to));
    const PacketGraph::Port& port = given.graph.ports(node)[number];
    const PacketGraph::Link& link = given.graph.link_of(port);
    latency += link.delay;
    delay.rate = delay.rate == 0 ? link.rate : std::min(delay.rate, link.rate);
    node = port.peer;
  }
  delay.latency = std::max(delay.latency, latency);
}

}  // namespace

std::vector<GraphDelay> delays_of_dimensions(const GivenGraph& given, const std::vector<std::uint32_t>& sizes) {
  const PacketRouter router(given.graph, given.failures, given.routes);
  std::uint32_t num_npus = 1;
  for (const std::uint32_t size : sizes) num_npus *= size;
  ensure(num_npus <= given.graph.num_hosts(), "each NPU has a host");
  std::vector<GraphDelay> delays;
  std::uint32_t stride = 1;
  for (const std::uint32_t size : sizes) {
    GraphDelay& delay = delays.emplace_back();
    for (std::uint32_t npu = 0; size > 1 && npu < num_npus; ++npu) {
      const std::uint32_t position = npu / stride % size;
      cover(given, router, npu, npu + (position + 1) % size * stride - position * stride, delay);
    }
    stride *= size;
  }
  return delays;
}

}  // namespace orrery::network
