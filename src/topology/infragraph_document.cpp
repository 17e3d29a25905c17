// Reads descriptions of InfraGraph (github:Keysight/infragraph, schema 2.4), nothing expanded.
#include "infragraph_document.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::topology {
namespace {

using Json = nlohmann::json;
using ComponentKind = ComponentGraph::Kind;

constexpr std::uint32_t most_count = 1U << 22U;
constexpr double least_bytes_per_ns = 1e-9, most_bytes_per_ns = 1.25e8, longest_latency_ns = 1e12;  // of a link
constexpr std::pair<std::string_view, ComponentKind> component_kinds[] = {
    {"custom", ComponentKind::custom}, {"cpu", ComponentKind::cpu},
    {"xpu", ComponentKind::xpu},       {"npu", ComponentKind::xpu},
    {"nic", ComponentKind::nic},       {"memory", ComponentKind::memory},
    {"port", ComponentKind::port},     {"switch", ComponentKind::network_switch}};

class DocumentReader {
 public:
  explicit DocumentReader(const std::string& file) { document_.file = file; }

  InfragraphDocument read(const Json& values) {
    const Json* const wrapped = find(values, "infrastructure", "the description");
    const Json& whole = wrapped != nullptr ? *wrapped : values;
    if (!whole.is_object()) fail("the description", "is no mapping", "devices, instances and edges");
    if (whole.contains("components"))
      read_lone_device(whole);
    else
      read_infrastructure(whole);
    if (const Json* const annotations = find(values, "annotations", "the description")) read_ranks(*annotations);
    check_names();
    return std::move(document_);
  }

 private:
  [[noreturn]] void fail(std::string_view where, std::string_view found, std::string_view expected,
                         std::string_view hint = {}) const {
    throw Error(ErrorCode::bad_input, {.file = document_.file}, fmt::format("{} {}", where, found), expected, hint);
  }

  // --- values ---

  const Json* find(const Json& at, const char* key, std::string_view where) const {
    if (!at.is_object()) fail(where, "is no mapping", "keys and values");
    const auto found = at.find(key);
    return found == at.end() || found->is_null() ? nullptr : &*found;
  }
  const Json& list(const Json& at, const char* key, std::string_view where) const {
    static const Json none = Json::array();
    const Json* const found = find(at, key, where);
    if (found == nullptr) return none;
    if (!found->is_array()) fail(where, fmt::format("has {}, which is no list", key), "a list");
    return *found;
  }
  std::optional<std::string> text(const Json& at, const char* key, std::string_view where) const {
    const Json* const found = find(at, key, where);
    if (found == nullptr) return {};
    if (found->is_string()) return found->get<std::string>();
    if (found->is_number() || found->is_boolean()) return found->dump();
    fail(where, fmt::format("has {}, which is no text", key), "a text");
  }
  std::string name(const Json& at, const char* key, std::string_view where) const {
    const auto found = text(at, key, where);
    if (!found || found->empty()) fail(where, fmt::format("has no {}", key), "a text");
    return *found;
  }
  std::uint32_t count(const Json& at, std::string_view where) const {
    const auto found = text(at, "count", where);
    if (!found) return 1;
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(found->data(), found->data() + found->size(), value);
    if (error != std::errc() || end != found->data() + found->size() || value < 1 || value > most_count)
      fail(where, fmt::format("has count {}", cited(*found)), fmt::format("1 to {}", most_count));
    return value;
  }
  double number(const Json& at, const char* key, std::string_view where) const {
    const std::string found = name(at, key, where);
    double value = 0;
    const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
    if (error != std::errc() || end != found.data() + found.size() || !std::isfinite(value) || value < 0)
      fail(where, fmt::format("has {} {}", key, cited(found)), "a number, 0 or more");
    return value;
  }
  /// Notes keys that the reader does not know, and refuses those of an older schema.
  void note_others(const Json& at, std::initializer_list<std::string_view> known, std::string_view what,
                   std::string_view where) {
    if (at.contains("connections"))
      fail(where, "has connections, as in an older schema of InfraGraph", "edges with ep1, ep2, scheme and link",
           "Write the description with InfraGraph 2.4.");
    for (const auto& entry : at.items())
      if (std::ranges::find(known, entry.key()) == known.end() &&
          unknown_.emplace(std::string(what), entry.key()).second)
        document_.notes.push_back(
            fmt::format("{} has the key '{}', which is not known and is ignored", where, cited(entry.key())));
  }

  // --- the parts of a description ---

  void read_lone_device(const Json& at) {
    document_.devices.push_back(read_device(at));
    document_.name = document_.devices[0].name;
    document_.instances.push_back({document_.name, document_.name, 1});
  }
  void read_infrastructure(const Json& at) {
    note_others(at, {"name", "description", "devices", "links", "instances", "edges"}, "infrastructure",
                "the infrastructure");
    document_.name = text(at, "name", "the infrastructure").value_or("");
    for (const Json& device : list(at, "devices", "the infrastructure"))
      document_.devices.push_back(read_device(device));
    document_.links = read_links(at, "the infrastructure");
    for (const Json& entry : list(at, "instances", "the infrastructure")) {
      const std::string where = fmt::format("instances[{}]", document_.instances.size());
      InfragraphDocument::Instance instance{name(entry, "name", where), name(entry, "device", where),
                                            count(entry, where)};
      note_others(entry, {"name", "description", "device", "count"}, "instance", where);
      document_.instances.push_back(std::move(instance));
    }
    document_.edges = read_edges(at, "instance", "the infrastructure");
    if (document_.instances.empty())
      fail("the infrastructure", "has no instances", "instances of its devices",
           "Write the description with InfraGraph 2.4.");
  }

  InfragraphDocument::Device read_device(const Json& at) {
    InfragraphDocument::Device device;
    std::string where = fmt::format("devices[{}]", document_.devices.size());
    device.name = name(at, "name", where);
    where = fmt::format("device '{}'", cited(device.name));
    note_others(at, {"name", "description", "components", "links", "edges"}, "device", where);
    for (const Json& entry : list(at, "components", where))
      device.components.push_back(
          read_component(entry, fmt::format("component {} of {}", device.components.size(), where)));
    device.links = read_links(at, where);
    device.edges = read_edges(at, "device", where);
    return device;
  }
  InfragraphDocument::Component read_component(const Json& at, const std::string& where) {
    InfragraphDocument::Component component;
    component.name = name(at, "name", where);
    component.count = count(at, where);
    const auto choice = text(at, "choice", where);
    if (!choice && at.contains("type"))
      fail(where, "has a type and no choice, as in an older schema of InfraGraph",
           "choice: custom, device, cpu, xpu, nic, memory, port or switch",
           "Write the description with InfraGraph 2.4.");
    note_others(at,
                {"name", "description", "count", "choice", "custom", "device", "cpu", "xpu", "npu", "nic", "memory",
                 "port", "switch"},
                "component", where);
    component.is_device = choice == "device";
    if (component.is_device || !choice) return component;
    const auto known = std::ranges::find(component_kinds, *choice, &std::pair<std::string_view, ComponentKind>::first);
    if (known != std::end(component_kinds))
      component.kind = known->second;
    else if (unknown_.emplace("choice", *choice).second)
      document_.notes.push_back(
          fmt::format("{} has the choice '{}', which is not known and is taken as custom", where, cited(*choice)));
    return component;
  }

  std::vector<ComponentGraph::LinkKind> read_links(const Json& at, const std::string& of) {
    std::vector<ComponentGraph::LinkKind> links;
    for (const Json& entry : list(at, "links", of)) {
      ComponentGraph::LinkKind link;
      link.name = name(entry, "name", fmt::format("links[{}] of {}", links.size(), of));
      const std::string where = fmt::format("link '{}' of {}", cited(link.name), of);
      note_others(entry, {"name", "description", "physical"}, "link", where);
      if (std::ranges::find(links, link.name, &ComponentGraph::LinkKind::name) != links.end())
        fail(where, "is there twice", "each link once");
      if (const Json* const physical = find(entry, "physical", where)) {
        note_others(*physical, {"bandwidth", "latency"}, "physical", where);
        if (const Json* const bandwidth = find(*physical, "bandwidth", where))
          link.bytes_per_ns = read_bandwidth(*bandwidth, where);
        if (const Json* const latency = find(*physical, "latency", where))
          link.latency_ns = read_latency(*latency, where);
      }
      links.push_back(std::move(link));
    }
    return links;
  }
  std::optional<double> read_bandwidth(const Json& at, const std::string& where) {
    note_others(at, {"choice", "gigabits_per_second", "gigabytes_per_second", "gigatransfers_per_second"}, "bandwidth",
                where);
    std::optional<double> rate;
    if (find(at, "gigatransfers_per_second", where) != nullptr)
      fail(where, "has a bandwidth in gigatransfers_per_second, which lacks the width of the link",
           "gigabits_per_second or gigabytes_per_second");
    if (find(at, "gigabits_per_second", where) != nullptr) rate = number(at, "gigabits_per_second", where) / 8;
    if (find(at, "gigabytes_per_second", where) != nullptr) rate = number(at, "gigabytes_per_second", where);
    if (rate && (*rate < least_bytes_per_ns || *rate > most_bytes_per_ns))
      fail(where, fmt::format("has a bandwidth of {} GB/s", *rate), "1 B/s to 10^18 b/s");
    return rate;
  }
  std::optional<double> read_latency(const Json& at, const std::string& where) {
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

  std::vector<InfragraphDocument::Edge> read_edges(const Json& at, const char* whose, const std::string& of) {
    std::vector<InfragraphDocument::Edge> edges;
    for (const Json& entry : list(at, "edges", of)) {
      InfragraphDocument::Edge edge;
      edge.place = fmt::format("edges[{}] of {}", edges.size(), of);
      note_others(entry, {"ep1", "ep2", "scheme", "link"}, "edge", edge.place);
      for (const auto& [key, end] : {std::pair("ep1", &edge.a), std::pair("ep2", &edge.b)}) {
        const Json* const found = find(entry, key, edge.place);
        if (found == nullptr) fail(edge.place, fmt::format("has no {}", key), "ep1 and ep2, each with a component");
        note_others(*found, {whose, "component"}, "end of an edge", edge.place);
        end->instance = text(*found, whose, edge.place).value_or("");
        end->component = name(*found, "component", edge.place);
      }
      edge.scheme = read_scheme(entry, edge.place);
      edge.link = name(entry, "link", edge.place);
      edges.push_back(std::move(edge));
    }
    return edges;
  }
  InfragraphDocument::Scheme read_scheme(const Json& at, const std::string& where) const {
    const std::string scheme = text(at, "scheme", where).value_or("many2many");
    if (scheme == "one2one") return InfragraphDocument::Scheme::one_to_one;
    if (scheme == "ring") return InfragraphDocument::Scheme::ring;
    if (scheme != "many2many") fail(where, fmt::format("has scheme '{}'", cited(scheme)), "one2one, many2many or ring");
    return InfragraphDocument::Scheme::many_to_many;
  }

  /// Reads the annotations `rank` of components. Others are left out.
  void read_ranks(const Json& at) {
    for (const Json& node : list(at, "nodes", "annotations"))
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

  void check_names() const {
    std::set<std::string_view> devices, instances;
    for (const auto& device : document_.devices)
      if (!devices.insert(device.name).second)
        fail(fmt::format("device '{}'", cited(device.name)), "is there twice", "each device once");
    for (const auto& instance : document_.instances) {
      if (!instances.insert(instance.name).second)
        fail(fmt::format("instance '{}'", cited(instance.name)), "is there twice", "each instance once");
      if (!devices.contains(instance.device))
        fail(fmt::format("instance '{}'", cited(instance.name)),
             fmt::format("is of device '{}', which is not there", cited(instance.device)), "a name of devices");
    }
  }

  InfragraphDocument document_;
  std::set<std::pair<std::string, std::string>> unknown_;
};

}  // namespace

InfragraphDocument read_infragraph_document(const Json& values, const std::string& file) {
  return DocumentReader(file).read(values);
}

}  // namespace orrery::topology
