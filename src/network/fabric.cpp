#include "orrery/network/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"

namespace orrery::network {
namespace {

using topology::Dimension;
using topology::Shape;

// Numbers of an NPU's links.
constexpr std::uint32_t up = 0, down = 1;

std::uint32_t links_of_npu(const Dimension& dimension) {
  if (dimension.size == 1) return 0;
  switch (dimension.shape) {
    case Shape::ring:
    case Shape::mesh:
      return dimension.size == 2 ? 1 : 2;
    case Shape::fully_connected:
      return dimension.size - 1;
    case Shape::switched:
      return 2;
  }
  return 0;
}

}  // namespace

Fabric::Fabric(const topology::Topology& topology) : topology_(topology) {
  std::uint64_t count = 0;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    dimensions_.push_back({count, links_of_npu(topology.dimension(d)), per_npu_});
    per_npu_ += dimensions_.back().per_npu;
    count += std::uint64_t{dimensions_.back().per_npu} * topology.num_npus();
    if (count > most_links)
      throw Error(ErrorCode::bad_input,
                  fmt::format("topology, dimension {} ({}): with it the network has {} links; expected {} at the most "
                              "where every link is simulated",
                              d, name(topology.dimension(d).shape), count, most_links));
  }
  num_links_ = static_cast<std::uint32_t>(count);
}

Fabric::Link Fabric::find(LinkId link) const {
  std::uint32_t d = topology_.num_dimensions() - 1;
  while (link.value() < dimensions_[d].first || dimensions_[d].per_npu == 0) --d;
  const auto offset = static_cast<std::uint32_t>(link.value() - dimensions_[d].first);
  return {link, d, NpuId(offset / dimensions_[d].per_npu), offset % dimensions_[d].per_npu};
}

LinkId Fabric::link_of(NpuId npu, std::uint32_t k) const {
  std::uint32_t d = topology_.num_dimensions() - 1;
  while (k < dimensions_[d].before || dimensions_[d].per_npu == 0) --d;
  return LinkId(first_of(d, npu).value() + k - dimensions_[d].before);
}

LinkId Fabric::first_of(std::uint32_t d, NpuId npu) const {
  return LinkId(static_cast<std::uint32_t>(dimensions_[d].first) + npu.value() * dimensions_[d].per_npu);
}

/// The NPU of the same line with this coordinate.
NpuId Fabric::moved(NpuId npu, std::uint32_t d, std::uint32_t coordinate) const {
  const std::uint32_t stride = topology_.stride(d);
  return NpuId(npu.value() - topology_.coordinate(npu, d) * stride + coordinate * stride);
}

NpuId Fabric::target(const Link& link) const {
  const Dimension& dimension = topology_.dimension(link.dimension);
  const std::uint32_t n = dimension.size;
  const std::uint32_t c = topology_.coordinate(link.owner, link.dimension);
  if (dimension.shape == Shape::switched) return link.owner;
  if (dimension.shape == Shape::fully_connected) return moved(link.owner, link.dimension, (c + 1 + link.number) % n);
  return moved(link.owner, link.dimension, (link.number == up ? c + 1 : c + n - 1) % n);
}

topology::Port Fabric::port(const Link& link) const {
  const topology::Links& links = topology_.links();
  if (!links.has_ports(link.dimension)) return {};
  const auto of = [&](NpuId npu) { return links.port(link.dimension, links.kind_of_port(link.dimension, npu)); };
  return slower(of(link.owner), of(target(link)));
}

Fabric::Ends Fabric::ends(const Link& link) const {
  Ends ends{link.owner, target(link), port(link)};
  if (topology_.dimension(link.dimension).shape == Shape::switched) (link.number == up ? ends.to : ends.from).reset();
  return ends;
}

/// From an NPU towards another coordinate of its line.
LinkId Fabric::leaving(std::uint32_t d, NpuId from, std::uint32_t coordinate) const {
  const Dimension& dimension = topology_.dimension(d);
  const std::uint32_t n = dimension.size;
  const LinkId first = first_of(d, from);
  if (dimension.shape == Shape::switched || n == 2) return first;
  if (topology_.links().has_failed(d, from))
    coordinate = topology_.links().next_step(d, from, moved(from, d, coordinate));
  const std::uint32_t distance = (coordinate + n - topology_.coordinate(from, d)) % n;
  if (dimension.shape == Shape::fully_connected) return LinkId(first.value() + distance - 1);
  const bool upwards =
      dimension.shape == Shape::mesh ? coordinate > topology_.coordinate(from, d) : distance <= n - distance;
  return LinkId(first.value() + (upwards ? up : down));
}

LinkId Fabric::first(NpuId from, NpuId to) const {
  for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d)
    if (const std::uint32_t c = topology_.coordinate(to, d); c != topology_.coordinate(from, d))
      return leaving(d, from, c);
  fail_check("a way from an NPU to itself", std::source_location::current());
}

std::optional<LinkId> Fabric::next(const Link& link, NpuId to) const {
  const std::uint32_t d = link.dimension;
  if (topology_.dimension(d).shape == Shape::switched && link.number == up)
    return LinkId(first_of(d, moved(link.owner, d, topology_.coordinate(to, d))).value() + down);
  const NpuId here = target(link);
  if (here == to) return {};
  return first(here, to);
}

Time Fabric::holds(const Link& link, Bytes size) const {
  return topology_.link_delay(link.dimension, 0, size, port(link));
}

Time Fabric::passes(const Link& link, Bytes size) const {
  return std::max(topology_.link_delay(link.dimension, 1, size, port(link)), tick(topology_.rules().rounding));
}

Time Fabric::least_pass() const {
  Time least = Time::max();
  for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d)
    if (topology_.dimension(d).size > 1)
      least = std::min(least, topology_.link_delay(d, 1, Bytes(0), {1, topology_.links().least_latency(d)}));
  return std::max(least, tick(topology_.rules().rounding));
}

}  // namespace orrery::network
