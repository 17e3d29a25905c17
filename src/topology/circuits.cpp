#include "orrery/topology/circuits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>
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

/// Throws for rates and circuits that the dimensions cannot have.
void validate_rates(const CircuitConfiguration& configuration, const std::string& key, const Topology& topology) {
  const auto& dimension = topology.dimension(0);
  if (configuration.circuits.empty() && !configuration.rate) return;
  if (topology.num_dimensions() > 1 || dimension.oversubscription > 1 || !topology.ports().all().empty() ||
      !topology.links().empty())
    throw Error(ErrorCode::bad_input, {.key = key}, "found rates of circuits in several dimensions or at shared ports",
                "one dimension of plain links");
  if (configuration.circuits.empty()) return;
  if (dimension.shape->name != "FullyConnected")
    throw Error(ErrorCode::bad_input, {.key = key}, fmt::format("found circuits in a {}", dimension.shape->name),
                "a dimension FullyConnected, whose links become the circuits");
  std::set<std::pair<NpuId, NpuId>> known;
  for (const Circuit& circuit : configuration.circuits) {
    for (const NpuId npu : {circuit.from, circuit.to})
      if (npu.value() >= topology.num_npus())
        throw Error(ErrorCode::bad_input, {.key = key}, fmt::format("found NPU {}", npu.value()),
                    fmt::format("0 to {}", topology.num_npus() - 1));
    if (circuit.from == circuit.to || !known.emplace(circuit.from, circuit.to).second)
      throw Error(
          ErrorCode::bad_input, {.key = key},
          circuit.from == circuit.to
              ? fmt::format("a circuit leads from NPU {} to itself", circuit.from.value())
              : fmt::format("two circuits lead from NPU {} to NPU {}", circuit.from.value(), circuit.to.value()),
          "one circuit between two NPUs");
  }
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
    const auto& configuration = options_.configurations[c];
    has_rates_ = has_rates_ || configuration.rate || !configuration.circuits.empty();
    find_routes(c);
    circuits_.emplace_back();
    for (std::uint32_t npu = 0; npu < num_npus; ++npu)
      circuits_.back().push_back(lists_circuits(c) ? listed_circuits_of(c, NpuId(npu))
                                                   : circuits_of(topology, c, NpuId(npu)));
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
    const auto& [name, npus, rate, circuits] = options_.configurations[c];
    validate_rates(options_.configurations[c], key_of(c), topology);
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

/// Finds the next NPU on the way with the fewest circuits to each destination, the lowest among equals (O5).
void Circuits::find_routes(std::uint32_t configuration) {
  const auto& circuits = options_.configurations[configuration].circuits;
  auto& next = next_.emplace_back();
  auto& rates = rate_of_.emplace_back();
  if (circuits.empty()) return;
  const std::uint32_t n = num_npus();
  std::vector<std::set<std::uint32_t>> towards(n);  // NPUs with a circuit to this one
  for (const Circuit& circuit : circuits) {
    towards[circuit.to.index()].insert(circuit.from.value());
    rates[std::uint64_t{circuit.from.value()} * n + circuit.to.value()] = circuit.rate;
  }
  next.resize(std::size_t{n} * n);
  for (std::uint32_t destination = 0; destination < n; ++destination) {
    const auto entry = [&](std::uint32_t at) -> std::uint32_t& { return next[std::size_t{at} * n + destination]; };
    for (std::uint32_t at = 0; at < n; ++at) entry(at) = at;
    std::vector<std::uint32_t> reached = {destination};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      std::vector<std::uint32_t> found;
      for (const std::uint32_t from : towards[reached[i]])
        if (from != destination && entry(from) == from) {
          entry(from) = reached[i];
          found.push_back(from);
        }
      reached.insert(reached.end(), found.begin(), found.end());
    }
  }
}

/// Returns where the links of an NPU lead: to an NPU, or to a switch, which is -1 - s for switch s of a dimension
/// group, and the first position of this group.
std::vector<Circuits::PortOf> Circuits::circuits_of(const Topology& topology, std::uint32_t configuration,
                                                    NpuId npu) const {
  std::vector<PortOf> found;
  const NpuId at = position_of(configuration, npu);
  std::uint32_t before = 0;
  for (std::uint32_t d = 0; d < topology.num_dimensions(); ++d) {
    const Wiring& wiring = topology.wiring(d);
    const std::uint32_t own = topology.coordinate(at, d), stride = topology.stride(d);
    const std::uint32_t first_of_group = at.value() - own * stride;
    for (std::uint32_t k = 0; k < wiring.links_per_position() && topology.dimension(d).size > 1; ++k) {
      const GroupLink link{own, k};
      if (!wiring.exists(link)) continue;
      PortOf port{before + k, {}, options_.configurations[configuration].rate.value_or(CircuitRate())};
      std::size_t end = 0;
      for (const Device device : {wiring.from(link), wiring.to(link)}) {
        const bool is_switch = device.kind == Device::Kind::network_switch;
        port.ends[end++] = is_switch ? -1 - static_cast<std::int64_t>(device.number)
                                     : npu_at(configuration, NpuId(first_of_group + device.number * stride)).value();
        port.ends[end++] = is_switch ? first_of_group : 0;
      }
      found.push_back(port);
    }
    if (topology.dimension(d).size > 1) before += wiring.links_per_position();
  }
  return found;
}

/// Returns the circuits that leave an NPU, as those of a dimension FullyConnected are numbered.
std::vector<Circuits::PortOf> Circuits::listed_circuits_of(std::uint32_t configuration, NpuId npu) const {
  std::vector<PortOf> found;
  for (const Circuit& circuit : options_.configurations[configuration].circuits) {
    if (circuit.from != npu) continue;
    const std::uint32_t number = (circuit.to.value() + num_npus() - npu.value()) % num_npus() - 1;
    found.push_back({number, {npu.value(), 0, circuit.to.value(), 0}, circuit.rate});
  }
  std::ranges::sort(found, {}, &PortOf::number);
  return found;
}

bool Circuits::changes_link(NpuId npu, std::uint32_t number, std::uint32_t before, std::uint32_t after) const {
  const auto port = [&](std::uint32_t configuration) -> const PortOf* {
    const auto& ports = circuits_[configuration][npu.index()];
    const auto found = std::ranges::find(ports, number, &PortOf::number);
    return found == ports.end() ? nullptr : &*found;
  };
  const PortOf *const old = port(before), *const later = port(after);
  return old != nullptr && (later == nullptr || *old != *later);
}

std::optional<CircuitRate> Circuits::rate(std::uint32_t configuration, NpuId from, NpuId to) const {
  if (!lists_circuits(configuration)) return options_.configurations[configuration].rate;
  const auto found = rate_of_[configuration].find(std::uint64_t{from.value()} * num_npus() + to.value());
  return found == rate_of_[configuration].end() ? std::nullopt : std::optional(found->second);
}

double Circuits::least_latency_ns() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& configuration : options_.configurations) {
    if (configuration.rate) least = std::min(least, configuration.rate->latency_ns);
    for (const Circuit& circuit : configuration.circuits) least = std::min(least, circuit.rate.latency_ns);
  }
  return least;
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
