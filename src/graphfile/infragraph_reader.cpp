#include "infragraph_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

using ComponentKind = ComponentGraph::Kind;

constexpr double least_bytes_per_ns = 1e-9, most_bytes_per_ns = 1.25e8, longest_latency_ns = 1e12;  // of a link
constexpr std::pair<std::string_view, ComponentKind> component_kinds[] = {
    {"custom", ComponentKind::custom}, {"cpu", ComponentKind::cpu},
    {"xpu", ComponentKind::xpu},       {"npu", ComponentKind::xpu},
    {"nic", ComponentKind::nic},       {"memory", ComponentKind::memory},
    {"port", ComponentKind::port},     {"switch", ComponentKind::network_switch}};
// The second of each is the spelling of older schemas.
constexpr const char *gigabits[] = {"gigabits_per_second", "giga_bits_per_second"},
                     *gigabytes[] = {"gigabytes_per_second", "giga_bytes_per_second"},
                     *gigatransfers[] = {"gigatransfers_per_second", "giga_transfers_per_second"};

}  // namespace

InfragraphReader::InfragraphReader(const std::string& file, bool is_older) {
  document_.file = file;
  document_.is_older = is_older;
}

void InfragraphReader::fail(std::string_view where, std::string_view found, std::string_view expected,
                            std::string_view hint) const {
  throw Error(ErrorCode::bad_input, {.file = document_.file}, fmt::format("{} {}", where, found), expected, hint);
}

const InfragraphReader::Json* InfragraphReader::find(const Json& at, const char* key, std::string_view where) const {
  if (!at.is_object()) fail(where, "is no mapping", "keys and values");
  const auto found = at.find(key);
  return found == at.end() || found->is_null() ? nullptr : &*found;
}

const InfragraphReader::Json& InfragraphReader::list(const Json& at, const char* key, std::string_view where) const {
  static const Json none = Json::array();
  const Json* const found = find(at, key, where);
  if (found == nullptr) return none;
  if (!found->is_array()) fail(where, fmt::format("has {}, which is no list", key), "a list");
  return *found;
}

std::optional<std::string> InfragraphReader::text(const Json& at, const char* key, std::string_view where) const {
  const Json* const found = find(at, key, where);
  if (found == nullptr) return {};
  if (found->is_string()) return found->get<std::string>();
  if (found->is_number() || found->is_boolean()) return found->dump();
  fail(where, fmt::format("has {}, which is no text", key), "a text");
}

std::string InfragraphReader::name(const Json& at, const char* key, std::string_view where) const {
  const auto found = text(at, key, where);
  if (!found || found->empty()) fail(where, fmt::format("has no {}", key), "a text");
  return *found;
}

std::optional<std::uint32_t> InfragraphReader::count(const Json& at, std::string_view where) const {
  const auto found = text(at, "count", where);
  if (!found) return {};
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(found->data(), found->data() + found->size(), value);
  if (error != std::errc() || end != found->data() + found->size() || value < 1 || value > most_infragraph_count)
    fail(where, fmt::format("has count {}", cited(*found)), fmt::format("1 to {}", most_infragraph_count));
  return value;
}

double InfragraphReader::number(const Json& at, const char* key, std::string_view where) const {
  const std::string found = name(at, key, where);
  double value = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  if (error != std::errc() || end != found.data() + found.size() || !std::isfinite(value) || value < 0)
    fail(where, fmt::format("has {} {}", key, cited(found)), "a number, 0 or more");
  return value;
}

void InfragraphReader::note_once(std::string_view what, std::string_view word, std::string note) {
  if (noted_.emplace(std::string(what), std::string(word)).second) document_.notes.push_back(std::move(note));
}

void InfragraphReader::note_others(const Json& at, std::initializer_list<std::string_view> known, std::string_view what,
                                   std::string_view where) {
  for (const auto& entry : at.items())
    if (std::ranges::find(known, entry.key()) == known.end())
      note_once(what, entry.key(),
                fmt::format("{} has the key '{}', which is not known and is ignored", where, cited(entry.key())));
}

ComponentKind InfragraphReader::kind_of(const std::string& word, const char* key, std::string_view where) {
  const auto known = std::ranges::find(component_kinds, word, &std::pair<std::string_view, ComponentKind>::first);
  if (known != std::end(component_kinds)) return known->second;
  note_once("kind", word,
            fmt::format("{} has the {} '{}', which is not known and is taken as custom", where, key, cited(word)));
  return ComponentKind::custom;
}

std::vector<ComponentGraph::LinkKind> InfragraphReader::read_links(const Json& at, const std::string& of) {
  std::vector<ComponentGraph::LinkKind> links;
  for (const Json& entry : list(at, "links", of)) {
    ComponentGraph::LinkKind link;
    link.name = name(entry, "name", fmt::format("links[{}] of {}", links.size(), of));
    const std::string where = fmt::format("link '{}' of {}", cited(link.name), of);
    if (std::ranges::find(links, link.name, &ComponentGraph::LinkKind::name) != links.end())
      fail(where, "is there twice", "each link once");
    if (document_.is_older) {
      note_others(entry, {"name", "description", "physical", "bandwidth", "latency"}, "link", where);
      read_physics(entry, where, link);
    } else {
      note_others(entry, {"name", "description", "physical"}, "link", where);
    }
    if (const Json* const physical = find(entry, "physical", where)) {
      note_others(*physical, {"bandwidth", "latency"}, "physical", where);
      read_physics(*physical, where, link);
    }
    links.push_back(std::move(link));
  }
  return links;
}

void InfragraphReader::read_physics(const Json& at, const std::string& where, ComponentGraph::LinkKind& link) {
  if (const Json* const bandwidth = find(at, "bandwidth", where)) link.bytes_per_ns = read_bandwidth(*bandwidth, where);
  if (const Json* const latency = find(at, "latency", where)) link.latency_ns = read_latency(*latency, where);
}

std::optional<double> InfragraphReader::read_bandwidth(const Json& at, const std::string& where) {
  if (!at.is_object()) fail(where, "has a bandwidth that is no mapping", "a unit and a number");
  note_others(at, {"choice", gigabits[0], gigabits[1], gigabytes[0], gigabytes[1], gigatransfers[0], gigatransfers[1]},
              "bandwidth", where);
  std::optional<double> rate;
  std::string lacks_width;
  for (const char* const unit : gigatransfers)
    if (find(at, unit, where) != nullptr) {
      const std::string found = fmt::format("has a bandwidth in {}, which lacks the width of the link", unit);
      if (!document_.is_older) fail(where, found, "gigabits_per_second or gigabytes_per_second");
      lacks_width = fmt::format("{} {}. It is taken as none", where, found);
    }
  for (const char* const unit : gigabits)
    if (find(at, unit, where) != nullptr) rate = number(at, unit, where) / 8;
  for (const char* const unit : gigabytes)
    if (find(at, unit, where) != nullptr) rate = number(at, unit, where);
  if (!rate && !lacks_width.empty()) document_.notes.push_back(lacks_width);
  if (rate && (*rate < least_bytes_per_ns || *rate > most_bytes_per_ns))
    fail(where, fmt::format("has a bandwidth of {} GB/s", *rate), "1 B/s to 10^18 b/s");
  return rate;
}

std::optional<double> InfragraphReader::read_latency(const Json& at, const std::string& where) {
  if (!at.is_object()) fail(where, "has a latency that is no mapping", "a unit and a number");
  note_others(at, {"choice", "ms", "us", "ns"}, "latency", where);
  for (const auto& [unit, ns] : {std::pair("ms", 1e6), std::pair("us", 1e3), std::pair("ns", 1.0)})
    if (find(at, unit, where) != nullptr) {
      const double latency = number(at, unit, where);
      if (latency * ns > longest_latency_ns)
        fail(where, fmt::format("has a latency of {} {}", latency, unit), "at most 1000 s");
      return latency * ns;
    }
  return {};
}

void InfragraphReader::read_ranks(const Json& annotations) {
  for (const Json& node : list(annotations, "nodes", "annotations"))
    for (const Json& attribute : list(node, "attributes", "a node of annotations")) {
      if (text(attribute, "attribute", "an annotation") != "rank") continue;
      const std::string component = name(node, "name", "a node of annotations");
      const std::string value = name(attribute, "value", "an annotation");
      std::uint32_t rank = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), rank);
      if (error != std::errc() || end != value.data() + value.size())
        fail(fmt::format("component '{}'", cited(component)), fmt::format("has rank '{}'", cited(value)),
             "a whole number");
      document_.ranks[component] = rank;
    }
}

}  // namespace orrery::graphfile
