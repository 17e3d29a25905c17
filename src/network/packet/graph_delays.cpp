#include "orrery/network/graph_delays.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/network/packet_router.hpp"

namespace orrery::network {
namespace {

using Partners = GraphDimension::Partners;

/// Follows the routes of the pairs of one dimension.
class DimensionRoutes {
 public:
  DimensionRoutes(const GivenGraph& given, const PacketRouter& router, std::size_t dimension)
      : given_(given), router_(router), dimension_(dimension) {}

  /// Lets the delay cover the routes from an NPU to its partners.
  void cover(std::uint32_t npu, const std::vector<std::uint32_t>& partners, bool need_own_ports);
  const GraphDelay& delay() const { return delay_; }

 private:
  std::uint64_t follow(std::uint32_t from, std::uint32_t to, std::uint16_t first);

  const GivenGraph& given_;
  const PacketRouter& router_;
  std::size_t dimension_;
  GraphDelay delay_;
};

/// Follows the route that begins with a port. Returns the rate of its slowest link.
std::uint64_t DimensionRoutes::follow(std::uint32_t from, std::uint32_t to, std::uint16_t first) {
  Time latency;
  std::uint64_t rate = ~std::uint64_t{0};
  std::uint32_t node = from;
  for (std::uint16_t number = first; node != to;) {
    const PacketGraph::Port& port = given_.graph.ports(node)[number];
    const PacketGraph::Way way = given_.graph.way_of(port);
    latency += way.delay;
    rate = std::min(rate, way.rate);
    node = port.peer;
    if (node != to) number = router_.port(node, {from, to, 0}, Time::zero());
  }
  delay_.latency = std::max(delay_.latency, latency);
  return rate;
}

void DimensionRoutes::cover(std::uint32_t npu, const std::vector<std::uint32_t>& partners, bool need_own_ports) {
  std::map<std::uint16_t, std::uint32_t> partner_at;
  for (const std::uint32_t partner : partners) {
    const auto ports = router_.ports(npu, partner, Time::zero());
    if (ports.empty())
      throw Error(ErrorCode::bad_input,
                  fmt::format("system.network.graph: no working links lead from NPU {} to NPU {}; "
                              "expected a way between the NPUs of dimension {}. NPUs forward "
                              "packets of others only with forwarding: true.",
                              npu, partner, dimension_));
    std::uint64_t rate = 0;
    for (const std::uint16_t port : ports) {
      rate += follow(npu, partner, port);
      const auto [other, is_new] = partner_at.try_emplace(port, partner);
      if (!is_new && need_own_ports)
        throw Error(ErrorCode::bad_input,
                    fmt::format("system.network.graph: NPU {} has the same port towards NPU {} and NPU {} of dimension "
                                "{}; expected a link of its own to each, as the shape has them. Take a Switch.",
                                npu, other->second, partner, dimension_));
    }
    delay_.rate = delay_.rate == 0 ? rate : std::min(delay_.rate, rate);
  }
}

/// Returns the partners of an NPU in a dimension with this stride.
std::vector<std::uint32_t> partners_of(std::uint32_t npu, const GraphDimension& dimension, std::uint32_t stride) {
  const std::uint32_t size = dimension.size, position = npu / stride % size;
  const auto at = [&](std::uint32_t other) { return npu + other * stride - position * stride; };
  std::vector<std::uint32_t> partners;
  if (dimension.partners == Partners::all) {
    for (std::uint32_t other = 0; other < size; ++other)
      if (other != position) partners.push_back(at(other));
    return partners;
  }
  partners.push_back(at((position + 1) % size));
  if (dimension.partners == Partners::neighbours && size > 2) partners.push_back(at((position + size - 1) % size));
  return partners;
}

}  // namespace

std::optional<Partners> partners_on_graph(std::string_view shape) {
  if (shape == "Switch") return Partners::next;
  if (shape == "Ring") return Partners::neighbours;
  if (shape == "FullyConnected") return Partners::all;
  return {};
}

std::vector<GraphDelay> delays_of_dimensions(const GivenGraph& given, const std::vector<GraphDimension>& dimensions) {
  const PacketRouter router(given.graph, given.failures, given.routes);
  std::uint32_t num_npus = 1;
  for (const GraphDimension& dimension : dimensions) num_npus *= dimension.size;
  ensure(num_npus <= given.graph.num_hosts(), "each NPU has a host");
  std::vector<GraphDelay> delays;
  std::uint32_t stride = 1;
  for (const GraphDimension& dimension : dimensions) {
    DimensionRoutes routes(given, router, delays.size());
    for (std::uint32_t npu = 0; dimension.size > 1 && npu < num_npus; ++npu)
      routes.cover(npu, partners_of(npu, dimension, stride), dimension.partners != Partners::next);
    delays.push_back(routes.delay());
    stride *= dimension.size;
  }
  return delays;
}

}  // namespace orrery::network
