#include "circuits.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "orrery/base/text.hpp"
#include "section.hpp"
#include "types.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view configurations_expected =
    "a list of configurations such as [{name: next, stride: 1}, {name: third, stride: 3}]";
constexpr std::string_view order_expected = "the NPUs in the order of their positions, such as [0, 2, 1, 3]";

/// Returns the NPUs 0, s, 2s, ... modulo their number, which must be all of them.
std::vector<NpuId> strided(std::uint32_t stride, std::uint32_t num_npus, const Place& place) {
  if (std::gcd(stride, num_npus) != 1)
    throw Error(ErrorCode::bad_input, place, fmt::format("a stride of {} does not pass all {} NPUs", stride, num_npus),
                "a stride that has no common divisor with their number");
  std::vector<NpuId> npus;
  for (std::uint64_t p = 0; p < num_npus; ++p) npus.emplace_back(static_cast<std::uint32_t>(p * stride % num_npus));
  return npus;
}

topology::CircuitConfiguration read_configuration(const Value& value, const std::string& path, const Value& list,
                                                  std::uint32_t num_npus, Faults& faults) {
  Section section(&value, path, list, faults);
  topology::CircuitConfiguration read;
  if (const Value* const name = section.need("name", "a name"))
    read.name = as_text(*name, section.path("name"), "a name");
  const Value* const stride = section.find("stride");
  const Value* const order = section.find("order");
  section.refuse_unknown();
  if ((stride == nullptr) == (order == nullptr))
    throw Error(ErrorCode::bad_input, value.place(path), "found neither or both of stride and order", "one of them");
  if (stride != nullptr) {
    const std::string key = section.path("stride");
    read.npus = strided(as_count(*stride, key), num_npus, stride->place(key));
    return read;
  }
  const auto& items = as_list(*order, section.path("order"), order_expected);
  for (std::size_t i = 0; i < items.size(); ++i)
    read.npus.emplace_back(as_count(items[i], fmt::format("{}.{}", section.path("order"), i), 0));
  return read;
}

}  // namespace

std::shared_ptr<const topology::Circuits> read_circuits(const Value& value, const std::string& path,
                                                        const Configuration& target, Faults& faults) {
  const topology::Topology topology(target.dimensions);
  Section section(&value, path, value, faults);
  topology::CircuitOptions options;
  if (const Value* const time = section.find("switching-time"))
    options.switching_time = Time::from_ps(std::llround(as_nanoseconds(*time, section.path("switching-time")) * 1000));
  if (const Value* const list = section.need("configurations", configurations_expected)) {
    const auto& items = as_list(*list, section.path("configurations"), configurations_expected);
    for (std::size_t i = 0; i < items.size(); ++i)
      options.configurations.push_back(read_configuration(
          items[i], fmt::format("{}.{}", section.path("configurations"), i), *list, topology.num_npus(), faults));
  }
  if (const Value* const groups = section.find("groups")) {
    const std::string key = section.path("groups");
    if (groups->kind != Value::Kind::mapping)
      throw Error(ErrorCode::bad_input, groups->place(key), fmt::format("found {}", groups->description()),
                  "a mapping of groups to configurations, such as {tp: next, dp: third}");
    for (const Value::Entry& entry : groups->entries)
      options.groups[entry.key] =
          as_text(entry.value, fmt::format("{}.{}", key, entry.key), "the name of a configuration");
  }
  section.refuse_unknown();
  if (faults.count() > 0) return nullptr;
  return std::make_shared<const topology::Circuits>(std::move(options), topology);
}

std::string circuits_text(const topology::Circuits& circuits) {
  const topology::CircuitOptions& options = circuits.options();
  std::string configurations, groups;
  for (const auto& [name, npus] : options.configurations) {
    std::string order;
    for (const NpuId npu : npus) order += fmt::format("{}{}", order.empty() ? "" : ", ", npu.value());
    configurations +=
        fmt::format("{}{{name: {}, order: [{}]}}", configurations.empty() ? "" : ", ", in_quotes(name), order);
  }
  for (const auto& [group, name] : options.groups)
    groups += fmt::format("{}{}: {}", groups.empty() ? "" : ", ", in_quotes(group), in_quotes(name));
  return fmt::format("{{switching-time: {} ps, configurations: [{}]{}}}", options.switching_time.ps(), configurations,
                     groups.empty() ? "" : fmt::format(", groups: {{{}}}", groups));
}

std::vector<Contradiction> contradictions_of_circuits(const Configuration& configuration) {
  const std::string key = "system.network.circuits";
  const auto& network = configuration.execution.network;
  std::vector<Contradiction> all;
  if (configuration.rule_set != RuleSet::physical)
    all.push_back({key, "found circuits with ASTRA-sim's rules, which know none", "rules: physical"});
  if (network.graph)
    all.push_back({key, "found circuits beside system.network.graph, whose links stay as they are", "one of them"});
  if (network.model->sends_packets)
    all.push_back({key, "found circuits in the packet network, whose links stay as they are",
                   "system.network.model: congestion-unaware or congestion-aware"});
  if (!configuration.perturbation.links.empty())
    all.push_back({"perturbation.links", "found faults of links by dimension, but circuits change what links join",
                   "no faults, or no circuits"});
  if (configuration.run.fold)
    all.push_back({"run.fold", "found true with system.network.circuits, which join NPUs that are not alike",
                   "false (no --fold)"});
  if (configuration.gpu.profile)
    all.push_back({"system.gpu", "found GPUs whose thread blocks send requests over circuits",
                   "no system.gpu, or no system.network.circuits"});
  if (!configuration.workload.jobs.empty()) all.push_back({key, "found circuits beside jobs", "one of them"});
  return all;
}

}  // namespace orrery::config
