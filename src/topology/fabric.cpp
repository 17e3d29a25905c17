#include "orrery/topology/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/error.hpp"
#include "orrery/topology/wiring.hpp"

namespace orrery::topology {
namespace {

// Numbers of the links of a port.
constexpr std::uint32_t to_port = 0, from_port = 1, links_of_port = 2;

}  // namespace

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
  for (const SharedPort& port : topology.ports().all()) {
    if (!port.is_contended) continue;
    PerDimension& made = dimensions_.emplace_back();
    made.first = count;
    made.before = per_npu_;
    made.first_switch = num_switches;
    made.per_npu = links_of_port;
    made.by_npu = Divisor(links_of_port);
    made.switches_per_group = 1;
    ports_.push_back(&port);
    per_npu_ += links_of_port;
    count += std::uint64_t{links_of_port} * topology.num_npus();
    num_switches += topology.num_npus();
    if (count > most_links)
      throw Error(
          ErrorCode::bad_input,
          fmt::format("topology, port {}: with it the network has {} links; expected {} at the most where every "
                      "link is simulated",
                      port.name, count, most_links));
  }
  num_links_ = static_cast<std::uint32_t>(count);
  detours_.resize(topology.num_dimensions());
  for (std::uint32_t d = 0; d < topology.num_dimensions() && !topology.links().empty(); ++d)
    for (const auto& [first, links] : topology.links().between_switches(d))
      if (links.has_failed()) detours_[d].try_emplace(first, topology.wiring(d), links);
}

std::size_t Fabric::place_of(const SharedPort& port) const {
  return topology_.num_dimensions() + static_cast<std::size_t>(std::ranges::find(ports_, &port) - ports_.begin());
}

LinkId Fabric::link_of_port(const SharedPort& port, NpuId npu, std::uint32_t number) const {
  const PerDimension& of = dimensions_[place_of(port)];
  return LinkId(static_cast<std::uint32_t>(of.first) + npu.value() * of.per_npu + number);
}

Fabric::Link Fabric::find(LinkId link) const {
  std::size_t d = dimensions_.size() - 1;
  while (link.value() < dimensions_[d].first || dimensions_[d].per_npu == 0) --d;
  const auto offset = static_cast<std::uint32_t>(link.value() - dimensions_[d].first);
  const std::uint32_t owner = dimensions_[d].by_npu.quotient(offset);
  const bool is_of_port = d >= topology_.num_dimensions();
  const std::uint32_t dimension =
      is_of_port ? ports_[d - topology_.num_dimensions()]->first_dimension() : static_cast<std::uint32_t>(d);
  return {link, dimension, NpuId(owner), offset - owner * dimensions_[d].per_npu, is_of_port};
}

LinkId Fabric::link_of(NpuId npu, std::uint32_t k) const {
  std::size_t d = dimensions_.size() - 1;
  while (k < dimensions_[d].before || dimensions_[d].per_npu == 0) --d;
  return LinkId(static_cast<std::uint32_t>(dimensions_[d].first) + npu.value() * dimensions_[d].per_npu + k -
                dimensions_[d].before);
}

LinkId Fabric::first_of(std::uint32_t d, NpuId npu) const {
  return LinkId(static_cast<std::uint32_t>(dimensions_[d].first) + npu.value() * dimensions_[d].per_npu);
}

/// Returns the NPU of the same group at this position.
NpuId Fabric::moved(NpuId npu, std::uint32_t d, std::uint32_t position) const {
  const std::uint32_t stride = topology_.stride(d);
  return NpuId(npu.value() - topology_.coordinate(npu, d) * stride + position * stride);
}

std::uint32_t Fabric::number_at_owner(const Link& link) const {
  return dimensions_[link.is_of_port ? place_of(*port_of(link.dimension)) : link.dimension].before + link.number;
}

Fabric::Ends Fabric::ends(const Link& link) const {
  const auto port_of_npu = [&](const SharedPort& port, NpuId npu) {
    return -1 - static_cast<std::int64_t>(dimensions_[place_of(port)].first_switch + npu.value());
  };
  const SharedPort* const port = port_of(link.dimension);
  if (link.is_of_port) {
    const std::int64_t npu = link.owner.value(), device = port_of_npu(*port, link.owner);
    return link.number == to_port ? Ends{npu, device} : Ends{device, npu};
  }
  const PerDimension& d = dimensions_[link.dimension];
  const std::uint32_t stride = topology_.stride(link.dimension);
  const std::uint32_t size = topology_.dimension(link.dimension).size;
  const std::uint64_t group = link.owner.value() / (stride * size) * stride + link.owner.value() % stride;
  const auto number_of = [&](Device device) {
    if (device.kind == Device::Kind::position && port != nullptr)
      return port_of_npu(*port, moved(link.owner, link.dimension, device.number));
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
  for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d) {
    if (!has_links(d)) continue;
    const std::uint32_t groups = topology_.num_npus() / topology_.dimension(d).size;
    for (std::uint32_t group = 0; group < groups; ++group)
      for (const SwitchTier& tier : topology_.wiring(d).switch_tiers())
        for (std::uint32_t k = 0; k < tier.count; ++k)
          switches.push_back({d, fmt::format("{} {}", tier.name, group * tier.count + k)});
  }
  for (const SharedPort* const port : ports_)
    for (std::uint32_t npu = 0; npu < topology_.num_npus(); ++npu)
      switches.push_back({port->first_dimension(), fmt::format("{} {}", port->name, npu)});
  return switches;
}

bool Fabric::continues(const Link& link, const Link& next) const {
  if (link.is_of_port) return link.number == to_port;
  return next.is_of_port ? next.number == from_port : link.dimension == next.dimension;
}

bool Fabric::exists(const Link& link) const {
  if (link.is_of_port) return true;
  const GroupLink in_group{position_of(link), link.number};
  if (!topology_.wiring(link.dimension).exists(in_group)) return false;
  const SwitchLinks* const changed = topology_.links().between_switches(link.dimension, link.owner);
  return changed == nullptr || !changed->has_failed(in_group);
}

Bandwidth Fabric::bandwidth(const Link& link) const {
  if (link.is_of_port) return port_of(link.dimension)->rate;
  return Bandwidth::from_bytes_per_ns(topology_.dimension(link.dimension).bandwidth_of_links().bytes_per_ns() *
                                      port(link).bandwidth);
}

const SharedPort* Fabric::port_before(const Link& link) const {
  const SharedPort* const port = port_of(link.dimension);
  if (port == nullptr || link.is_of_port) return nullptr;
  const Wiring& wiring = topology_.wiring(link.dimension);
  const GroupLink in_group{position_of(link), link.number};
  const bool is_beside =
      wiring.from(in_group).kind == Device::Kind::position || wiring.to(in_group).kind == Device::Kind::position;
  return is_beside ? port : nullptr;
}

LinkRole Fabric::role(const Link& link) const {
  if (link.is_of_port) return LinkRole::port;
  return topology_.wiring(link.dimension).role({position_of(link), link.number});
}

bool Fabric::has_core(std::uint32_t d) const { return has_links(d) && topology_.wiring(d).core_bandwidth() > 0; }

Port Fabric::port(const Link& link) const {
  if (link.is_of_port) return {};
  const Links& links = topology_.links();
  const Wiring& wiring = topology_.wiring(link.dimension);
  const GroupLink in_group{position_of(link), link.number};
  const SwitchLinks* const changed = links.between_switches(link.dimension, link.owner);
  const Port own = changed == nullptr ? Port{} : changed->port(in_group);
  if (wiring.role(in_group) == LinkRole::core) return {wiring.core_bandwidth() * own.bandwidth, own.latency};
  if (changed != nullptr && own != Port{}) return own;  // no NPU is at either end
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

/// Returns the link over which a message leaves a switch of the group of an NPU.
GroupLink Fabric::towards(std::uint32_t d, NpuId in_group, Device at, std::uint32_t position) const {
  if (!detours_[d].empty())
    if (const auto found = detours_[d].find(first_of_group(in_group, d)); found != detours_[d].end())
      return found->second.towards(at, position);
  return topology_.wiring(d).towards(at, position);
}

/// Returns the lowest dimension in which two NPUs differ.
std::optional<std::uint32_t> Fabric::lowest_between(NpuId from, NpuId to) const {
  for (std::uint32_t d = 0; d < topology_.num_dimensions(); ++d)
    if (topology_.coordinate(to, d) != topology_.coordinate(from, d)) return d;
  return {};
}

/// Returns the link over which a message leaves an NPU, or a port of it, for another NPU.
LinkId Fabric::lowest_leaving(NpuId from, NpuId to) const {
  const auto d = lowest_between(from, to);
  ensure(d.has_value(), "a way from an NPU to itself");
  return leaving(*d, from, topology_.coordinate(to, *d));
}

LinkId Fabric::first(NpuId from, NpuId to) const {
  const auto d = lowest_between(from, to);
  ensure(d.has_value(), "a way from an NPU to itself");
  if (const SharedPort* const port = port_of(*d)) return link_of_port(*port, from, to_port);
  return leaving(*d, from, topology_.coordinate(to, *d));
}

std::optional<LinkId> Fabric::next(const Link& link, NpuId to) const {
  const std::uint32_t d = link.dimension;
  if (link.is_of_port) {
    if (link.number == from_port) return link.owner == to ? std::nullopt : std::optional(first(link.owner, to));
    return link.owner == to ? link_of_port(*port_of(d), to, from_port) : lowest_leaving(link.owner, to);
  }
  const Wiring& wiring = topology_.wiring(d);
  const Device at = wiring.to({position_of(link), link.number});
  if (at.kind == Device::Kind::network_switch) {
    const GroupLink onward = towards(d, link.owner, at, topology_.coordinate(to, d));
    return LinkId(first_of(d, moved(link.owner, d, onward.position)).value() + onward.number);
  }
  const NpuId here = moved(link.owner, d, at.number);
  if (const SharedPort* const port = port_of(d)) {
    const auto onward = lowest_between(here, to);
    if (!onward || port_of(*onward) != port) return link_of_port(*port, here, from_port);
    return leaving(*onward, here, topology_.coordinate(to, *onward));
  }
  if (here == to) return {};
  return first(here, to);
}

std::vector<Fabric::Link> Fabric::alternatives(const Link& link, NpuId to) const {
  if (link.is_of_port || topology_.dimension(link.dimension).routing != Routing::adaptive) return {};
  const GroupLink regular{position_of(link), link.number};
  std::vector<Link> others;
  for (const GroupLink other :
       topology_.wiring(link.dimension).alternatives(regular, topology_.coordinate(to, link.dimension))) {
    const Link found{LinkId(link.id.value() - link.number + other.number), link.dimension, link.owner, other.number};
    if (exists(found)) others.push_back(found);
  }
  return others;
}

std::uint32_t Fabric::links_left(const Link& link, NpuId to) const {
  std::uint32_t count = 1;
  for (Link at = link;; ++count) {
    const auto onward = next(at, to);
    if (!onward) return count;
    const Link following = find(*onward);
    if (!continues(at, following)) return count;
    at = following;
  }
}

}  // namespace orrery::topology
