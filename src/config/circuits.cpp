#include "circuits.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>
#include <sstream>
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

constexpr std::string_view circuit_expected = "two ports, and perhaps a bandwidth and a latency: [0, 5, 50 GB/s, 1 us]";

/// What the circuits of a configuration have where they do not say it.
struct CircuitDefaults {
  std::uint32_t num_npus = 0, ports_per_npu = 1;
  topology::CircuitRate rate;
};

/// Reads circuits between ports, each of which is one in both directions. Throws Error (bad_input).
std::vector<topology::Circuit> read_listed(const Value& list, const std::string& path, const CircuitDefaults& given) {
  std::vector<topology::Circuit> circuits;
  std::set<std::uint32_t> used;
  const auto& items = as_list(list, path, "a list of circuits such as [[0, 1], [2, 3]]");
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string here = fmt::format("{}.{}", path, i);
    const auto& parts = as_list(items[i], here, circuit_expected);
    if (parts.size() != 2 && parts.size() != 4)
      throw Error(ErrorCode::bad_input, items[i].place(here), fmt::format("found {} items", parts.size()),
                  circuit_expected);
    std::array<std::uint32_t, 2> npus{};
    for (std::size_t end = 0; end < 2; ++end) {
      const std::uint32_t port =
          as_count(parts[end], fmt::format("{}.{}", here, end), 0, given.num_npus * given.ports_per_npu - 1);
      if (!used.insert(port).second)
        throw Error(ErrorCode::bad_input, items[i].place(here), fmt::format("port {} has two circuits", port),
                    "each port once");
      npus[end] = port / given.ports_per_npu;
    }
    topology::CircuitRate rate = given.rate;
    if (parts.size() == 4) rate = {as_bandwidth(parts[2], here + ".2"), as_nanoseconds(parts[3], here + ".3")};
    circuits.push_back({NpuId(npus[0]), NpuId(npus[1]), rate});
    circuits.push_back({NpuId(npus[1]), NpuId(npus[0]), rate});
  }
  if (circuits.empty()) throw Error(ErrorCode::bad_input, list.place(path), "the list is empty", circuit_expected);
  return circuits;
}

/// Reads circuits from one NPU to another one, each in one direction, as resolved configurations have them.
std::vector<topology::Circuit> read_directed(const Value& list, const std::string& path) {
  constexpr std::string_view expected = "two NPUs, a bandwidth and a latency: [0, 5, 50 GB/s, 1 us]";
  std::vector<topology::Circuit> circuits;
  const auto& items = as_list(list, path, expected);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string here = fmt::format("{}.{}", path, i);
    const auto& parts = as_list(items[i], here, expected);
    if (parts.size() != 4)
      throw Error(ErrorCode::bad_input, items[i].place(here), fmt::format("found {} items", parts.size()), expected);
    circuits.push_back({NpuId(as_count(parts[0], here + ".0", 0)),
                        NpuId(as_count(parts[1], here + ".1", 0)),
                        {as_bandwidth(parts[2], here + ".2"), as_nanoseconds(parts[3], here + ".3")}});
  }
  return circuits;
}

topology::CircuitConfiguration read_configuration(const Value& value, const std::string& path, const Value& list,
                                                  CircuitDefaults given, Faults& faults) {
  Section section(&value, path, list, faults);
  topology::CircuitConfiguration read;
  if (const Value* const name = section.need("name", "a name"))
    read.name = as_text(*name, section.path("name"), "a name");
  const Value* const stride = section.find("stride");
  const Value* const order = section.find("order");
  const Value* const circuits = section.find("circuits");
  const Value* const directed = section.find("directed");
  const Value* const bandwidth = section.find("bandwidth");
  const Value* const latency = section.find("latency");
  section.refuse_unknown();
  if (bandwidth != nullptr) given.rate.bandwidth = as_bandwidth(*bandwidth, section.path("bandwidth"));
  if (latency != nullptr) given.rate.latency_ns = as_nanoseconds(*latency, section.path("latency"));
  if (circuits != nullptr && directed != nullptr)
    throw Error(ErrorCode::bad_input, value.place(path), "found both of circuits and directed", "one of them");
  if (circuits != nullptr)
    read.circuits = read_listed(*circuits, section.path("circuits"), given);
  else if (directed != nullptr)
    read.circuits = read_directed(*directed, section.path("directed"));
  else if (bandwidth != nullptr || latency != nullptr)
    read.rate = given.rate;
  if ((stride != nullptr && order != nullptr) || (stride == nullptr && order == nullptr && read.circuits.empty()))
    throw Error(ErrorCode::bad_input, value.place(path), "found neither or both of stride and order", "one of them");
  if (order == nullptr) {
    const std::string key = section.path("stride");
    read.npus = strided(stride == nullptr ? 1 : as_count(*stride, key), given.num_npus,
                        stride == nullptr ? value.place(path) : stride->place(key));
    return read;
  }
  const auto& items = as_list(*order, section.path("order"), order_expected);
  for (std::size_t i = 0; i < items.size(); ++i)
    read.npus.emplace_back(as_count(items[i], fmt::format("{}.{}", section.path("order"), i), 0));
  return read;
}

/// Reads schedules of configurations: for each a line `BW name`, a row of bandwidths in GB/s for each NPU, and `END`.
/// Throws Error (bad_input) with the line.
std::vector<topology::CircuitConfiguration> read_schedule(const std::filesystem::path& file, const Place& place,
                                                          const CircuitDefaults& given) {
  std::istringstream text(read_text(file, place));
  std::vector<topology::CircuitConfiguration> found;
  std::uint64_t number = 0;
  std::uint32_t row = 0;
  bool is_open = false;
  const auto refuse = [&](const std::string& what, const std::string& expected) {
    throw Error(ErrorCode::bad_input, {.file = file.string(), .line = number}, what, expected);
  };
  const std::string rows_expected = fmt::format("{} rows of {} numbers, then END", given.num_npus, given.num_npus);
  for (std::string line; std::getline(text, line);) {
    ++number;
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word.starts_with('#')) continue;
    if (word == "BW") {
      if (is_open) refuse("the configuration before has no END", rows_expected);
      found.push_back({{}, strided(1, given.num_npus, place)});
      if (!(words >> found.back().name)) refuse("BW has no name", "BW name");
      is_open = true;
      row = 0;
    } else if (word == "END") {
      if (!is_open || row != given.num_npus) refuse(fmt::format("END after {} rows", row), rows_expected);
      if (found.back().circuits.empty()) refuse("the configuration has no circuit", "a bandwidth above 0");
      is_open = false;
    } else {
      if (!is_open || row == given.num_npus) refuse(fmt::format("found '{}'", cited(line)), "BW name, or END");
      std::istringstream numbers(line);
      for (std::uint32_t to = 0; to < given.num_npus; ++to) {
        double rate = 0;
        if (!(numbers >> rate) || !(rate >= 0) || !std::isfinite(rate))
          refuse(fmt::format("number {} of the row is missing or below 0", to), rows_expected);
        if (rate > 0 && to != row)
          found.back().circuits.push_back(
              {NpuId(row), NpuId(to), {Bandwidth::from_bytes_per_ns(rate), given.rate.latency_ns}});
      }
      if (numbers >> word) refuse(fmt::format("found '{}' behind the row", cited(word)), rows_expected);
      ++row;
    }
  }
  if (is_open || found.empty()) refuse("the file ends without END", rows_expected);
  return found;
}

}  // namespace

std::shared_ptr<const topology::Circuits> read_circuits(const Value& value, const std::string& path,
                                                        const Configuration& target, Faults& faults) {
  const topology::Topology topology(target.dimensions);
  Section section(&value, path, value, faults);
  topology::CircuitOptions options;
  if (const Value* const time = section.find("switching-time"))
    options.switching_time = Time::from_ps(std::llround(as_nanoseconds(*time, section.path("switching-time")) * 1000));
  const auto& dimension = target.dimensions.front();
  CircuitDefaults given{topology.num_npus(), 1, {dimension.bandwidth_of_links(), dimension.latency_ns}};
  if (const Value* const ports = section.find("ports-per-npu"))
    given.ports_per_npu = as_count(*ports, section.path("ports-per-npu"), 1, 1024);
  if (const Value* const file = section.find("file")) {
    const std::string key = section.path("file");
    options.configurations = read_schedule(as_path(*file, key), file->place(key), given);
  } else if (const Value* const list = section.need("configurations", configurations_expected)) {
    const auto& items = as_list(*list, section.path("configurations"), configurations_expected);
    for (std::size_t i = 0; i < items.size(); ++i)
      options.configurations.push_back(
          read_configuration(items[i], fmt::format("{}.{}", section.path("configurations"), i), *list, given, faults));
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
  const auto rate_text = [](const topology::CircuitRate& rate) {
    return fmt::format("{} GB/s, {} ns", rate.bandwidth.bytes_per_ns(), rate.latency_ns);
  };
  for (const auto& configuration : options.configurations) {
    std::string order, list;
    for (const NpuId npu : configuration.npus) order += fmt::format("{}{}", order.empty() ? "" : ", ", npu.value());
    for (const topology::Circuit& circuit : configuration.circuits)
      list += fmt::format("{}[{}, {}, {}]", list.empty() ? "" : ", ", circuit.from.value(), circuit.to.value(),
                          rate_text(circuit.rate));
    configurations += fmt::format("{}{{name: {}, order: [{}]", configurations.empty() ? "" : ", ",
                                  in_quotes(configuration.name), order);
    if (const auto& rate = configuration.rate)
      configurations +=
          fmt::format(", bandwidth: {} GB/s, latency: {} ns", rate->bandwidth.bytes_per_ns(), rate->latency_ns);
    if (!list.empty()) configurations += fmt::format(", directed: [{}]", list);
    configurations += "}";
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
  if (network.circuits->has_rates() && !network.model->simulates_links())
    all.push_back({key, "found rates of circuits without links, whose collectives take those of the dimension",
                   "system.network.model: congestion-aware"});
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
