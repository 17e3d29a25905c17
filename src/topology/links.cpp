#include "orrery/topology/links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

constexpr double most_factor = 1e6;       // and its inverse the least
constexpr double least_bandwidth = 1e-9;  // bytes per ns: one byte per second
constexpr double most_bandwidth = 9e9;

[[noreturn]] void refuse(std::string_view found, std::string_view expected, std::string_view hint = {}) {
  throw Error(ErrorCode::bad_input, {}, found, expected, hint);
}

void require_factor(std::string_view what, double factor) {
  if (!(factor >= 1 / most_factor && factor <= most_factor))
    refuse(fmt::format("the factor of {} is {}", what, factor), "1e-6 to 1e6");
}

/// Returns whether a link leads from one position directly to another.
bool are_joined(const Wiring& wiring, std::uint32_t a, std::uint32_t b) {
  for (std::uint32_t number = 0; number < wiring.links_per_position(); ++number)
    if (const GroupLink link{a, number}; wiring.exists(link) && wiring.to(link) == Device{Device::Kind::position, b})
      return true;
  return false;
}

/// Returns whether a fault takes one of several links side by side from NPUs, each of which has them to its switch.
bool dimension_loses_one(const Dimension& dimension, const LinkFault& fault) {
  return dimension.shape->sends_over_one_link && dimension.links > 1 && !fault.npus.empty();
}

/// Throws what says that a shape cannot lose any link.
[[noreturn]] void refuse_without_detours(Shape shape, const std::optional<ValidationError>& validation_error) {
  const std::string expected =
      fmt::format("a failed link of a {}", names_where<ShapeType>([](const ShapeType& s) { return s.has_detours; }));
  if (shape->sends_over_one_link)
    refuse(fmt::format("in a {} each NPU has one link, and nothing leads around it", shape.name()), expected,
           "Make the link slow, or leave the NPU out of the system.");
  refuse(validation_error ? validation_error->found : fmt::format("a {} has no way around a failed link", shape.name()),
         expected);
}

}  // namespace

Port slower(const Port& a, const Port& b) {
  return {std::min(a.bandwidth, b.bandwidth), std::max(a.latency, b.latency)};
}

Links::Links(std::span<const Dimension> dimensions) {
  for (const Dimension& dimension : dimensions) {
    dimensions_.push_back({dimension, num_npus_, {{}}, {}, {}, {}, {}, {}});
    num_npus_ *= dimension.size;
  }
}

void Links::add(const LinkFault& fault) {
  if (fault.dimension >= dimensions_.size())
    refuse(fmt::format("found dimension {}", fault.dimension),
           dimensions_.size() == 1 ? std::string("0, the only dimension")
                                   : fmt::format("a dimension, 0 to {}", dimensions_.size() - 1));
  for (const NpuId npu : fault.npus)
    if (npu.value() >= num_npus_)
      refuse(fmt::format("found NPU {}", npu.value()), fmt::format("an NPU below {}", num_npus_));
  PerDimension& dimension = dimensions_[fault.dimension];
  if (!fault.switches.empty())
    add_of_switches(dimension, fault);
  else if (fault.failed)
    add_failed(dimension, fault);
  else
    add_ports(dimension, fault);
  any_ = true;
}

void Links::add_ports(PerDimension& dimension, const LinkFault& fault) {
  require_factor("bandwidth", fault.port.bandwidth);
  require_factor("latency", fault.port.latency);
  if (dimension.kind_of.empty()) dimension.kind_of.resize(num_npus_);
  for (const NpuId npu : fault.npus) {
    std::uint16_t& kind = dimension.kind_of[npu.index()];
    const Port before = dimension.ports[kind];
    const Port port{before.bandwidth * fault.port.bandwidth, before.latency * fault.port.latency};
    const double bandwidth = dimension.dimension.bandwidth_of_links().bytes_per_ns() * port.bandwidth;
    if (!(bandwidth >= least_bandwidth && bandwidth <= most_bandwidth && std::isfinite(port.latency)))
      refuse(fmt::format("the bandwidth of NPU {} becomes {} bytes/ns", npu.value(), bandwidth),
             "1 byte/s to 9e18 bytes/s");
    const auto found = std::ranges::find(dimension.ports, port);
    if (found == dimension.ports.end() && dimension.ports.size() > std::numeric_limits<std::uint16_t>::max())
      refuse("there are more than 65536 kinds of ports in a dimension", "fewer");
    kind = static_cast<std::uint16_t>(found - dimension.ports.begin());
    if (found == dimension.ports.end()) dimension.ports.push_back(port);
  }
}

/// Takes one of several links side by side from each of these NPUs, which then send over the others.
void Links::add_lost(PerDimension& of, const LinkFault& fault) {
  for (const NpuId npu : fault.npus) {
    const std::uint32_t lost = of.lost[npu]++, left = of.dimension.links - lost;
    if (left == 1)
      refuse(fmt::format("all {} links of NPU {} have failed, and nothing leads around them", of.dimension.links,
                         npu.value()),
             fmt::format("at most {} failed links of an NPU", of.dimension.links - 1));
    add_ports(of, {fault.dimension, {npu}, {.bandwidth = (left - 1.0) / left}});
  }
}

void Links::add_failed(PerDimension& of, const LinkFault& fault) {
  if (dimension_loses_one(of.dimension, fault)) return add_lost(of, fault);
  if (fault.npus.size() != 2)
    refuse(fmt::format("found {} NPUs of a failed link", fault.npus.size()), "the two NPUs that it joined");
  const NpuId a = fault.npus[0], b = fault.npus[1];
  const GroupNpus group{of.first_of_group(a), of.stride};
  if (a == b || of.first_of_group(b) != group.first)
    refuse(fmt::format("NPU {} and NPU {} do not differ in dimension {} alone", a.value(), b.value(), fault.dimension),
           "two NPUs that differ in this dimension alone");
  const auto [low, high] = std::minmax({of.position(a), of.position(b)});
  const Shape shape = of.dimension.shape;
  if (!of.wiring) of.wiring = make_wiring(of.dimension);
  FailedLinks failed;
  if (const auto found = of.failed.find(group.first); found != of.failed.end()) failed = found->second;
  if (topology::has_failed(failed, low, high)) return;
  failed.emplace_back(low, high);
  if (!shape->has_detours) refuse_without_detours(shape, of.wiring->validation_error(failed, group));
  if (!are_joined(*of.wiring, low, high))
    refuse(fmt::format("NPU {} and NPU {} are no neighbours on the {}", a.value(), b.value(), shape.name()),
           "two neighbours, which a link joins");
  if (const auto validation_error = of.wiring->validation_error(failed, group))
    refuse(validation_error->found, validation_error->expected);
  of.failed[group.first] = std::move(failed);
}

/// Changes or takes the links of a switch, or those between two. Links of NPUs to their switch are ports.
void Links::add_of_switches(PerDimension& of, const LinkFault& fault) {
  if (fault.switches.size() > 2)
    refuse(fmt::format("found {} switches", fault.switches.size()),
           "one switch, whose links are meant, or two, and the links between them");
  if (!of.wiring) of.wiring = make_wiring(of.dimension);
  const std::uint32_t size = of.dimension.size, groups = num_npus_ / size;
  std::vector<SwitchPlace> places;
  for (const std::string& name : fault.switches) places.push_back(switch_named(*of.wiring, groups, name));
  const std::uint32_t group = places.front().group;
  const NpuId first(group / of.stride * of.stride * size + group % of.stride);
  const std::vector<GroupLink> links =
      places.back().group == group ? SwitchLinks::between(*of.wiring, places) : std::vector<GroupLink>();
  if (places.size() == 2 && links.empty())
    refuse(fmt::format("no link joins {} and {}", fault.switches[0], fault.switches[1]),
           "two switches that a link joins");
  std::vector<NpuId> npus;
  for (std::uint32_t position = 0; places.size() == 1 && position < size; ++position) {
    const Device home = of.wiring->to(of.wiring->first_link(position, position == 0 ? 1 : 0));
    if (std::ranges::find(places[0].numbers, home.number) != places[0].numbers.end())
      npus.push_back(GroupNpus{first, of.stride}[position]);
  }
  if (fault.failed && !npus.empty())
    refuse(fmt::format("{} is the only switch of NPU {}, which nothing else joins with the others", fault.switches[0],
                       npus.front().value()),
           "a switch without NPUs, or two switches, whose link fails",
           "Make the switch slow, or leave its NPUs out of the system.");
  if (!npus.empty()) add_ports(of, {.dimension = fault.dimension, .npus = npus, .port = fault.port});
  if (links.empty()) return;
  SwitchLinks& changed = of.switches.try_emplace(first, of.wiring, of.dimension.links).first->second;
  if (fault.failed) return changed.fail(links);
  require_factor("bandwidth", fault.port.bandwidth);
  require_factor("latency", fault.port.latency);
  changed.change(links, fault.port);
}

const SwitchLinks* Links::between_switches(std::uint32_t d, NpuId npu) const {
  if (!any_ || dimensions_[d].switches.empty()) return nullptr;
  const auto found = dimensions_[d].switches.find(dimensions_[d].first_of_group(npu));
  return found == dimensions_[d].switches.end() ? nullptr : &found->second;
}

double Links::least_latency(std::uint32_t d) const {
  double least = 1;
  if (has_ports(d))
    for (const Port& port : dimensions_[d].ports) least = std::min(least, port.latency);
  if (any_)
    for (const auto& [first, links] : dimensions_[d].switches) least = std::min(least, links.least_latency());
  return least;
}

const FailedLinks* Links::failed_around(std::uint32_t d, NpuId npu) const {
  if (!has_failed(d)) return nullptr;
  const auto found = dimensions_[d].failed.find(dimensions_[d].first_of_group(npu));
  return found == dimensions_[d].failed.end() ? nullptr : &found->second;
}

std::uint32_t Links::hops(std::uint32_t d, NpuId from, NpuId to, std::uint32_t regular) const {
  const FailedLinks* const failed = failed_around(d, from);
  if (failed == nullptr || from == to) return regular;
  const PerDimension& of = dimensions_[d];
  return of.wiring->hops_around(*failed, of.position(from), of.position(to));
}

std::uint32_t Links::next_step(std::uint32_t d, NpuId from, NpuId to) const {
  const FailedLinks* const failed = failed_around(d, from);
  ensure(failed != nullptr && from != to, "a way around in a group without failed links");
  const PerDimension& of = dimensions_[d];
  return of.wiring->next_around(*failed, of.position(from), of.position(to));
}

}  // namespace orrery::topology
