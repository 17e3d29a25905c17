#include "astra_sim.hpp"

#include <fmt/format.h>

#include "keys/keys.hpp"
#include "orrery/base/suggestion.hpp"
#include "orrery/graphfile/ns3_config.hpp"

namespace orrery::config {
namespace {

constexpr std::size_t most_named = 100;  // keys in a warning

double as_positive(const Value& value, const std::string& key) {
  const double number = as_number(value, key);
  if (!(number > 0))
    throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()), "more than 0");
  return number;
}

void warn_flags(const AstraSimInputs& files, Configuration& result) {
  std::vector<std::string> names = files.ignored;
  if (files.comm_scale != 1) names.emplace_back("comm-scale");
  if (files.compute_scale != 1) names.emplace_back("compute-scale");
  for (auto& name : names) name = fmt::format("--{}", name);
  if (!names.empty())
    result.warnings.push_back(fmt::format("without effect, as in ASTRA-sim 2: {}", fmt::join(names, ", ")));
}

}  // namespace

constinit const ValueKind<bool> zero_or_one_kind = kind_of<bool>(
    [](const Limits&) {
      return TypeInfo{std::string(boolean_name), "0 or 1", "-", "0 or 1"};
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
      if (value.kind == Value::Kind::scalar && !value.quoted && (value.text == "true" || value.text == "false"))
        return value.text == "true";
      return as_count(value, key, 0, 1) == 1;
    },
    [](const Limits&, bool value) { return std::string(value ? "1" : "0"); });

constinit const ValueKind<double> positive_kind = kind_of<double>(
    [](const Limits& limits) {
      return TypeInfo{"number", fmt::format("a number of {}", limits.text), std::string(limits.text), "more than 0", {},
                      true};
    },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) { return as_positive(value, key); },
    [](const Limits&, double value) { return fmt::to_string(value); });

constinit const ValueKind<Bandwidth> plain_bandwidth_kind = kind_of<Bandwidth>(
    [](const Limits&) { return TypeInfo{"number", "a number of GB/s", "GB/s", "more than 0", {}, true}; },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
      return Bandwidth::from_bytes_per_ns(as_positive(value, key));
    },
    [](const Limits&, Bandwidth value) { return fmt::to_string(value.bytes_per_ns()); });

constinit const ValueKind<double> plain_nanoseconds_kind = kind_of<double>(
    [](const Limits&) { return TypeInfo{"number", "a number of ns", "ns", "0 to 1e12", {}, true}; },
    [](const Limits&, const Value& value, const std::string& key, const Reading&) {
      const double ns = as_number(value, key);
      if (ns > 1e12)
        throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {} ns", ns), "at most 1000 s");
      return ns;
    },
    [](const Limits&, double value) { return fmt::to_string(value); });

void warn_without_effect(const Section& section, const std::filesystem::path& file, Reading& reading) {
  std::vector<std::string> names;
  for (const auto& name : std::exchange(reading.without_effect, {})) names.push_back(fmt::format("'{}'", name));
  const auto unknown = section.unknown();
  for (const auto* entry : unknown) {
    if (names.size() == most_named) break;
    const auto near = nearest(entry->key, section.known());
    names.push_back(near.empty() || entry->key.size() < 3
                        ? fmt::format("'{}'", cited(entry->key))
                        : fmt::format("'{}' (did you mean '{}'?)", cited(entry->key), near));
  }
  if (names.empty()) return;
  std::string text = fmt::format("{}: ignored, without meaning here: {}", file.string(), fmt::join(names, ", "));
  if (unknown.size() > most_named) text += fmt::format(" and {} more", unknown.size() - most_named);
  reading.configuration.warnings.push_back(std::move(text));
}

Configuration read_astra_sim(const AstraSimInputs& files, bool system_only, Faults& faults) {
  Configuration result;
  bool is_of_ns3 = false;
  const bool is_there = faults.attempt([&] { is_of_ns3 = graphfile::is_ns3_config(read_text(files.network)); });
  result.follow(is_of_ns3 ? RuleSet::physical : RuleSet::astra_sim);
  Reading reading{result, faults, system_only, &files};
  if (is_of_ns3)
    read_ns3_network(files, reading);
  else if (is_there)
    read_network_yml(files, reading);
  read_system_json(files, reading);
  if (!files.remote_memory.empty()) read_remote_memory_json(files, reading);
  if (const auto npus = count_npus(result.dimensions); !files.workload.empty() && npus > 0)
    result.workload.traces = {traces_of_prefix(files.workload, npus)};
  result.workload.surplus = SurplusTraces::ignored;
  if (!files.groups.empty()) {
    result.workload.groups = files.groups;
    if (!system_only)
      faults.attempt([&] { result.workload.groups_text = {"comm_group.json", read_text(files.groups)}; });
  }
  warn_flags(files, result);
  return result;
}

}  // namespace orrery::config
