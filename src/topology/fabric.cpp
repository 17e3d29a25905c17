#include "orrery/topology/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"
#include "wiring.hpp"

namespace orrery::topology {

Fabric::Fabric(const Topology& topology) : topology_(topology) {
  std::uint64_t count = 0, num_switches = 0;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    const Dimension& dimension = topology.dimension(d);
    PerDimension& made = dimensions_.emplace_back();
    made.first = count;
    made.before = per_npu_;
    made.first_switch = num_switches;
    if (dimension.size == 1) continue;
    made.wiring = make_wiring(dimension);
    made.per_npu = made.wiring->links_per_place();
    for (const Tier& tier : made.wiring->tiers()) made.switches_per_line += tier.count;
    per_npu_ += made.per_npu;
    count += std::uint64_t{made.per_npu} * topology.num_npus();
    num_switches += std::uint64_t{topology.num_npus() / dimension.size} * made.switches_per_line;
    if (count > most_links)
      throw Error(ErrorCode::bad_input,
                  fmt::format("topology, dimension {} ({}): with it the network has {} links; expected {} at the most "
                              "where every link is simulated",
                              d, name(dimension.shape), count, most_links));
  }
  num_links_ = static_cast<std::uint32_t>(count);
}

Fabric::~Fabric() = default;

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

Fabric::Ends Fabric::ends(const Link& link) const {
  const PerDimension& d = dimensions_[link.dimension];
  const std::uint32_t stride = topology_.stride(link.dimension);
  const std::uint32_t size = topology_.dimension(link.dimension).size;
  const std::uint64_t line = link.owner.value() / (stride * size) * stride + link.owner.value() % stride;
  const auto number_of = [&](Device device) {
    return device.kind == Device::Kind::place
               ? static_cast<std::int64_t>(moved(link.owner, link.dimension, device.number).value())
               : -1 - static_cast<std::int64_t>(d.first_switch + line * d.switches_per_line + device.number);
  };
  const LineLink in_line{place_of(link), link.number};
  return {number_of(d.wiring->from(in_line)), number_of(d.wiring->to(in_line))};
}

std::vector<Fabric::Switch> Fabric::switches() const {
  std::vector<Switch> switches;
  for (std::uint32_t d = 0; d < dimensions_.size(); ++d) {
    const std::uint32_t lines = topology_.num_npus() / topology_.dimension(d).size;
    for (std::uint32_t line = 0; dimensions_[d].wiring && line < lines; ++line)
      for (const Tier& tier : dimensions_[d].wiring->tiers())
        for (std::uint32_t k = 0; k < tier.count; ++k)
          switches.push_back({d, fmt::format("{} {}", tier.name, line * tier.count + k)});
  }
  return switches;
}

Part Fabric::part(const Link& link) const {
  return dimensions_[link.dimension].wiring->part({place_of(link), link.number});
}

bool Fabric::has_core(std::uint32_t d) const { return dimensions_[d].wiring && dimensions_[d].wiring->core() > 0; }

Port Fabric::port(const Link& link) const {
  const Links& links = topology_.links();
  const Wiring& wiring = *dimensions_[link.dimension].wiring;
  const LineLink in_line{place_of(link), link.number};
  if (wiring.part(in_line) == Part::core) return {wiring.core(), 1};
  if (!links.has_ports(link.dimension)) return {};
  const Device ends[] = {wiring.from(in_line), wiring.to(in_line)};
  const Port* ports[] = {nullptr, nullptr};
  for (const int end : {0, 1}) {
    if (ends[end].kind != Device::Kind::place) continue;
    const NpuId npu = moved(link.owner, link.dimension, ends[end].number);
    ports[end] = &links.port(link.dimension, links.kind_of_port(link.dimension, npu));
  }
  if (ports[0] != nullptr && ports[1] != nullptr) return slower(*ports[0], *ports[1]);
  const Port* const only = ports[0] != nullptr ? ports[0] : ports[1];
  return only == nullptr ? Port{} : *only;
}

/// From an NPU towards another coordinate of its line.
LinkId Fabric::leaving(std::uint32_t d, NpuId from, std::uint32_t coordinate) const {
  if (topology_.links().has_failed(d, from))
    coordinate = topology_.links().next_step(d, from, moved(from, d, coordinate));
  const LineLink link =
      dimensions_[d].wiring->towards({Device::Kind::place, topology_.coordinate(from, d)}, coordinate);
  return LinkId(first_of(d, from).value() + link.number);
}

LinkId Fabric::first(NpuId from, NpuId to) const {
  for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d)
    if (const std::uint32_t c = topology_.coordinate(to, d); c != topology_.coordinate(from, d))
      return leaving(d, from, c);
  ensure_failed("a way from an NPU to itself", std::source_location::current());
}

std::optional<LinkId> Fabric::next(const Link& link, NpuId to) const {
  const std::uint32_t d = link.dimension;
  const Wiring& wiring = *dimensions_[d].wiring;
  const Device at = wiring.to({place_of(link), link.number});
  if (at.kind == Device::Kind::a_switch) {
    const LineLink onward = wiring.towards(at, topology_.coordinate(to, d));
    return LinkId(first_of(d, moved(link.owner, d, onward.place)).value() + onward.number);
  }
  const NpuId here = moved(link.owner, d, at.number);
  if (here == to) return {};
  return first(here, to);
}

}  // namespace orrery::topology
