#include "orrery/topology/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/topology/wiring.hpp"

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
    const Wiring& wiring = topology.wiring(d);
    made.per_npu = wiring.links_per_position();
    made.by_npu = Divisor(made.per_npu);
    for (const SwitchTier& tier : wiring.switch_tiers()) made.switches_per_group += tier.count;
    per_npu_ += made.per_npu;
    count += std::uint64_t{made.per_npu} * topology.num_npus();
    num_switches += std::uint64_t{topology.num_npus() / dimension.size} * made.switches_per_group;
    if (count > most_links)
      throw Error(ErrorCode::bad_input,
                  fmt::format("topology, dimension {} ({}): with it the network has {} links; expected {} at the most "
                              "where every link is simulated",
                              d, name(dimension.shape), count, most_links));
  }
  num_links_ = static_cast<std::uint32_t>(count);
}

Fabric::Link Fabric::find(LinkId link) const {
  std::uint32_t d = topology_.num_dimensions() - 1;
  while (link.value() < dimensions_[d].first || dimensions_[d].per_npu == 0) --d;
  const auto offset = static_cast<std::uint32_t>(link.value() - dimensions_[d].first);
  const std::uint32_t owner = dimensions_[d].by_npu.quotient(offset);
  return {link, d, NpuId(owner), offset - owner * dimensions_[d].per_npu};
}

LinkId Fabric::link_of(NpuId npu, std::uint32_t k) const {
  std::uint32_t d = topology_.num_dimensions() - 1;
  while (k < dimensions_[d].before || dimensions_[d].per_npu == 0) --d;
  return LinkId(first_of(d, npu).value() + k - dimensions_[d].before);
}

LinkId Fabric::first_of(std::uint32_t d, NpuId npu) const {
  return LinkId(static_cast<std::uint32_t>(dimensions_[d].first) + npu.value() * dimensions_[d].per_npu);
}

/// Returns the NPU of the same group at this position.
NpuId Fabric::moved(NpuId npu, std::uint32_t d, std::uint32_t position) const {
  const std::uint32_t stride = topology_.stride(d);
  return NpuId(npu.value() - topology_.coordinate(npu, d) * stride + position * stride);
}

Fabric::Ends Fabric::ends(const Link& link) const {
  const PerDimension& d = dimensions_[link.dimension];
  const std::uint32_t stride = topology_.stride(link.dimension);
  const std::uint32_t size = topology_.dimension(link.dimension).size;
  const std::uint64_t group = link.owner.value() / (stride * size) * stride + link.owner.value() % stride;
  const auto number_of = [&](Device device) {
    return device.kind == Device::Kind::position
               ? static_cast<std::int64_t>(moved(link.owner, link.dimension, device.number).value())
               : -1 - static_cast<std::int64_t>(d.first_switch + group * d.switches_per_group + device.number);
  };
  const Wiring& wiring = topology_.wiring(link.dimension);
  const GroupLink in_group{position_of(link), link.number};
  return {number_of(wiring.from(in_group)), number_of(wiring.to(in_group))};
}

std::vector<Fabric::Switch> Fabric::switches() const {
  std::vector<Switch> switches;
  for (std::uint32_t d = 0; d < dimensions_.size(); ++d) {
    if (!has_links(d)) continue;
    const std::uint32_t groups = topology_.num_npus() / topology_.dimension(d).size;
    for (std::uint32_t group = 0; group < groups; ++group)
      for (const SwitchTier& tier : topology_.wiring(d).switch_tiers())
        for (std::uint32_t k = 0; k < tier.count; ++k)
          switches.push_back({d, fmt::format("{} {}", tier.name, group * tier.count + k)});
  }
  return switches;
}

LinkRole Fabric::role(const Link& link) const {
  return topology_.wiring(link.dimension).role({position_of(link), link.number});
}

bool Fabric::has_core(std::uint32_t d) const { return has_links(d) && topology_.wiring(d).core_bandwidth() > 0; }

Port Fabric::port(const Link& link) const {
  const Links& links = topology_.links();
  const Wiring& wiring = topology_.wiring(link.dimension);
  const GroupLink in_group{position_of(link), link.number};
  if (wiring.role(in_group) == LinkRole::core) return {wiring.core_bandwidth(), 1};
  if (!links.has_ports(link.dimension)) return {};
  const Device ends[] = {wiring.from(in_group), wiring.to(in_group)};
  const Port* ports[] = {nullptr, nullptr};
  for (const int end : {0, 1}) {
    if (ends[end].kind != Device::Kind::position) continue;
    const NpuId npu = moved(link.owner, link.dimension, ends[end].number);
    ports[end] = &links.port(link.dimension, links.kind_of_port(link.dimension, npu));
  }
  if (ports[0] != nullptr && ports[1] != nullptr) return slower(*ports[0], *ports[1]);
  const Port* const only = ports[0] != nullptr ? ports[0] : ports[1];
  return only == nullptr ? Port{} : *only;
}

/// Returns the link over which a message leaves an NPU for another position of its group.
LinkId Fabric::leaving(std::uint32_t d, NpuId from, std::uint32_t position) const {
  if (topology_.links().has_failed(d, from)) position = topology_.links().next_step(d, from, moved(from, d, position));
  const GroupLink link = topology_.wiring(d).first_link(topology_.coordinate(from, d), position);
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
  const Wiring& wiring = topology_.wiring(d);
  const Device at = wiring.to({position_of(link), link.number});
  if (at.kind == Device::Kind::network_switch) {
    const GroupLink onward = wiring.towards(at, topology_.coordinate(to, d));
    return LinkId(first_of(d, moved(link.owner, d, onward.position)).value() + onward.number);
  }
  const NpuId here = moved(link.owner, d, at.number);
  if (here == to) return {};
  return first(here, to);
}

}  // namespace orrery::topology
