#include "orrery/topology/circuits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::topology {
namespace {

constexpr std::string_view key_of_circuits = "system.network.circuits";
constexpr std::uint32_t no_npu = ~std::uint32_t{0};

std::string key_of(std::size_t configuration) {
  return fmt::format("{}.configurations.{}", key_of_circuits, configuration);
}

}  // namespace

Circuits::Circuits(CircuitOptions options, const Topology& topology) : options_(std::move(options)) {
  validate(topology);
  const std::uint32_t num_npus = topology.num_npus();
  for (std::uint32_t c = 0; c < options_.configurations.size(); ++c) {
    auto& positions = positions_.emplace_back(num_npus, NpuId(no_npu));
    for (std::uint32_t p = 0; p < num_npus; ++p) {
      NpuId& position = positions[npu_at(c, NpuId(p)).index()];
      if (position.value() != no_npu)
        throw Error(ErrorCode::bad_input, {.key = key_of(c)},
                    fmt::format("the ports of NPU {} have two circuits: it stands at positions {} and {}",
                                npu_at(c, NpuId(p)).value(), position.value(), p),
                    "each NPU once");
      position = NpuId(p);
    }
  }
  for (std::uint32_t c = 0; c < options_.configurations.size(); ++c) {
    circuits_.emplace_back();
    for (std::uint32_t npu = 0; npu < num_npus; ++npu) circuits_.back().push_back(circuits_of(topology, c, NpuId(npu)));
  }
  for (const auto& [group, name] : options_.groups) {
    const auto found = std::ranges::find(options_.configurations, name, &CircuitConfiguration::name);
    if (found == options_.configurations.end())
      throw Error(ErrorCode::bad_input, {.key = fmt::format("{}.groups.{}", key_of_circuits, group)},
                  fmt::format("no configuration is called '{}'", cited(name)), "the name of a configuration");
    of_group_[group] = static_cast<std::uint32_t>(found - options_.configurations.begin());
  }
}

void Circuits::validate(const Topology& topology) const {
  if (options_.configurations.empty())
    throw Error(ErrorCode::bad_input, {.key = fmt::format("{}.configurations", key_of_circuits)}, "the list is empty",
                "a configuration or more");
  for (std::size_t c = 0; c < options_.configurations.size(); ++c) {
    const auto& [name, npus] = options_.configurations[c];
    for (std::size_t before = 0; before < c; ++before)
      if (options_.configurations[before].name == name)
        throw Error(ErrorCode::bad_input, {.key = key_of(c) + ".name"},
                    fmt::format("configuration {} is called '{}' too", before, cited(name)), "a name of its own");
    if (npus.size() != topology.num_npus())
      throw Error(ErrorCode::bad_input, {.key = key_of(c)}, fmt::format("it places {}", counted(npus.size(), "NPU")),
                  fmt::format("the {} NPUs of the dimensions", topology.num_npus()));
    for (const NpuId npu : npus)
      if (npu.value() >= topology.num_npus())
        throw Error(ErrorCode::bad_input, {.key = key_of(c)}, fmt::format("found NPU {}", npu.value()),
                    fmt::format("0 to {}", topology.num_npus() - 1));
  }
}

/// Returns where the ports of an NPU lead: to an NPU, or to a switch, which is -1 - s for switch s of a dimension
/// group, and then the first position of this group.
std::vector<std::int64_t> Circuits::circuits_of(const Topology& topology, std::uint32_t configuration,
                                                NpuId npu) const {
  std::vector<std::int64_t> found;
  const NpuId at = position_of(configuration, npu);
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    const Wiring& wiring = topology.wiring(d);
    const std::uint32_t own = topology.coordinate(at, d), stride = topology.stride(d);
    for (std::uint32_t k = 0; k < wiring.links_per_position() && topology.dimension(d).size > 1; ++k) {
      const GroupLink link{own, k};
      if (!wiring.exists(link)) continue;
      for (const Device device : {wiring.from(link), wiring.to(link)}) {
        const std::uint32_t first_of_group = at.value() - own * stride;
        if (device.kind == Device::Kind::network_switch) {
          found.push_back(-1 - static_cast<std::int64_t>(device.number));
          found.push_back(first_of_group);
          continue;
        }
        found.push_back(npu_at(configuration, NpuId(first_of_group + device.number * stride)).value());
      }
    }
  }
  return found;
}

std::string_view Circuits::key_of_group(std::string_view group) const {
  if (group.empty()) group = "all";
  auto found = of_group_.find(group);
  if (found == of_group_.end()) found = of_group_.find(group.substr(0, group.find_first_of("_@")));
  return found == of_group_.end() ? std::string_view() : found->first;
}

std::uint32_t Circuits::of_group(std::string_view name) const {
  const auto found = of_group_.find(key_of_group(name));
  return found == of_group_.end() ? 0 : found->second;
}

}  // namespace orrery::topology
