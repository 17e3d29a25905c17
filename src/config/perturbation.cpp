#include <fmt/format.h>

#include <string_view>

#include "formats.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

constexpr std::string_view npus_example = "NPUs such as 7 or \"3,17,64-71\"";
constexpr double most_factor = 1e6;  // and its inverse the least

void require_factor(double factor, const Place& place) {
  if (!(factor >= 1 / most_factor && factor <= most_factor))
    throw Error(ErrorCode::bad_input, place, fmt::format("found {}", factor), "a factor from 1e-6 to 1e6");
}

double as_factor(const Value& value, const std::string& key) {
  const double factor = as_number(value, key);
  require_factor(factor, value.place(key));
  return factor;
}

std::vector<NpuRange> require_npus(Section& item, std::uint32_t num_npus) {
  return item.require("npus", npus_example, std::vector<NpuRange>(), [&](const Value& value, const std::string& key) {
    const std::string text = as_text(value, key, npus_example);
    return num_npus == 0 ? std::vector<NpuRange>() : parse_npu_list(text, num_npus, value.place(key));
  });
}

/// Calls read(item) for each entry of a list of mappings, if it is there.
template <class Read>
void for_each_item(Section& section, std::string_view key, std::string_view example, Read read) {
  const Value* const list = section.find(key);
  if (list == nullptr) return;
  section.faults().attempt([&] {
    const auto& items = as_list(*list, section.path(key), example);
    for (std::size_t i = 0; i < items.size(); ++i) {
      Section item(&items[i], fmt::format("{}.{}", section.path(key), i), items[i], section.faults());
      read(item);
      item.refuse_unknown();
    }
  });
}

void read_slow_npus(Section& section, std::uint32_t num_npus, Perturbation& result) {
  for_each_item(section, "slow-npus", "a list such as [{npus: \"3,64-71\", compute: 0.8}]", [&](Section& item) {
    auto npus = require_npus(item, num_npus);
    const double compute = item.require("compute", "a factor of the compute speed, such as 0.8", 1.0, as_factor);
    result.slow_npus.push_back({std::move(npus), compute});
  });
}

/// A number a line; lines that are empty or begin with # do not count.
std::vector<double> parse_speeds(const std::string& text, const std::string& file) {
  std::vector<double> speeds;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    at = end + 1;
    const Place place{.file = file, .line = ++number};
    if (line.empty() || line.starts_with('#')) continue;
    speeds.push_back(parse_number(line, place));
    require_factor(speeds.back(), place);
  }
  return speeds;
}

void read_compute_speed(Section& section, std::uint32_t num_npus, Configuration& result) {
  const Value* const value = section.find("compute-speed");
  if (value == nullptr) return;
  Perturbation& perturbation = result.perturbation;
  section.faults().attempt([&] {
    const std::string key = section.path("compute-speed");
    constexpr std::string_view expected = "a list of factors, one for each NPU, or a file that has one a line";
    if (value->kind == Value::Kind::scalar) {
      const auto file = as_path(*value, key);
      std::string text = read_text(file, value->place(key));
      perturbation.compute_speed = parse_speeds(text, file.string());
      perturbation.compute_speed_file = file;
      result.inputs.emplace_back("compute-speed.txt", std::move(text));
    } else {
      const auto& items = as_list(*value, key, expected);
      for (std::size_t i = 0; i < items.size(); ++i)
        perturbation.compute_speed.push_back(as_factor(items[i], fmt::format("{}.{}", key, i)));
    }
    const auto count = perturbation.compute_speed.size();
    if (num_npus == 0 || count == num_npus) return;
    perturbation.compute_speed.clear();
    throw Error(ErrorCode::bad_input, value->place(key), fmt::format("found {}", counted(count, "factor")),
                fmt::format("one for each of the {} NPUs", num_npus));
  });
}

void read_link(Section& item, std::uint32_t num_npus, topology::Links& all, Configuration& result) {
  Perturbation::Links links;
  links.dimension = item.require("dimension", "the number of a dimension, 0 innermost", 0U,
                                 [](const Value& v, const std::string& key) { return as_count(v, key, 0); });
  links.npus = require_npus(item, num_npus);
  links.port.bandwidth = item.get("bandwidth", 1.0, as_factor);
  links.port.latency = item.get("latency", 1.0, as_factor);
  links.failed = item.get("failed", false, as_bool);
  const bool has_factors = item.find("bandwidth") != nullptr || item.find("latency") != nullptr;
  item.faults().attempt([&] {
    if (links.failed == has_factors)
      throw Error(ErrorCode::bad_input, item.place("failed"),
                  links.failed ? "a failed link has neither bandwidth nor latency" : "the links are as they should be",
                  "factors of 'bandwidth' or 'latency', or 'failed: true'");
    if (num_npus == 0 || links.npus.empty()) return;
    try {
      all.add(link_fault(links));
    } catch (const Error& error) {
      const bool is_there = links.dimension < result.dimensions.size();
      throw Error(error.code(), item.place(is_there ? "npus" : "dimension"), error.text());
    }
    result.perturbation.links.push_back(links);
  });
}

/// Factors of all that is said of an NPU multiply. Empty if nothing is.
std::vector<double> speeds_of(const Perturbation& perturbation, std::uint32_t num_npus) {
  std::vector<double> speeds = perturbation.compute_speed;
  if (!perturbation.slow_npus.empty()) speeds.resize(num_npus, 1);
  for (const auto& slow : perturbation.slow_npus)
    for (const NpuRange& range : slow.npus)
      for (std::size_t npu = range.first; npu <= range.last; ++npu) speeds[npu] *= slow.compute;
  return speeds;
}

constexpr std::uint32_t most_npus = 1U << 24U;  // a topology of more is refused

}  // namespace

void read_perturbation(Section section, Configuration& result) {
  if (!section.present()) return;
  std::uint32_t num_npus = count_npus(result.dimensions);
  if (num_npus > most_npus) num_npus = 0;
  Perturbation& perturbation = result.perturbation;
  read_slow_npus(section, num_npus, perturbation);
  read_compute_speed(section, num_npus, result);
  topology::Links all(result.dimensions);
  for_each_item(section, "links", "a list such as [{dimension: 1, npus: 0-7, bandwidth: 0.5}]",
                [&](Section& item) { read_link(item, num_npus, all, result); });
  section.refuse_unknown();
  if (num_npus > 0) result.executor.compute_speed = speeds_of(perturbation, num_npus);
}

std::string to_text(const Perturbation& perturbation) {
  std::string text;
  if (!perturbation.slow_npus.empty()) text += "  slow-npus:\n";
  for (const auto& slow : perturbation.slow_npus)
    text += fmt::format("    - {{npus: \"{}\", compute: {}}}\n", to_text(slow.npus), slow.compute);
  if (const auto& file = perturbation.compute_speed_file)
    text +=
        fmt::format("  compute-speed: {}\n", in_quotes(std::filesystem::absolute(*file).lexically_normal().string()));
  else if (!perturbation.compute_speed.empty())
    text += fmt::format("  compute-speed: [{}]\n", fmt::join(perturbation.compute_speed, ", "));
  if (!perturbation.links.empty()) text += "  links:\n";
  for (const auto& links : perturbation.links)
    text +=
        fmt::format("    - {{dimension: {}, npus: \"{}\", {}}}\n", links.dimension, to_text(links.npus),
                    links.failed ? std::string("failed: true")
                                 : fmt::format("bandwidth: {}, latency: {}", links.port.bandwidth, links.port.latency));
  return text;
}

}  // namespace orrery::config
