// Reads descriptions of InfraGraph (github:Keysight/infragraph, schema 2.4), nothing expanded.
#include "infragraph_document.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "infragraph_reader.hpp"
#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

using Json = nlohmann::json;

class DocumentReader : InfragraphReader {
 public:
  explicit DocumentReader(const std::string& file) : InfragraphReader(file, false) {}

  InfragraphDocument read(const Json& values) {
    const Json* const wrapped = find(values, "infrastructure", "the description");
    const Json& whole = wrapped != nullptr ? *wrapped : values;
    if (!whole.is_object()) fail("the description", "is no mapping", "devices, instances and edges");
    if (whole.contains("components"))
      read_lone_device(whole);
    else
      read_infrastructure(whole);
    if (const Json* const annotations = find(values, "annotations", "the description")) read_ranks(*annotations);
    return std::move(document_);
  }

 private:
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
                                            count(entry, where).value_or(1)};
      note_others(entry, {"name", "description", "device", "count"}, "instance", where);
      document_.instances.push_back(std::move(instance));
    }
    document_.edges = read_edges(at, "instance", "the infrastructure");
  }

  InfragraphDocument::Device read_device(const Json& at) {
    InfragraphDocument::Device device;
    device.file = document_.file;
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
    component.count = count(at, where).value_or(1);
    const auto choice = text(at, "choice", where);
    note_others(at,
                {"name", "description", "count", "choice", "custom", "device", "cpu", "xpu", "npu", "nic", "memory",
                 "port", "switch"},
                "component", where);
    component.is_device = choice == "device";
    if (choice && !component.is_device) component.kind = kind_of(*choice, "choice", where);
    return component;
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
};

}  // namespace

InfragraphDocument read_infragraph_document(const Json& values, const std::string& file) {
  return DocumentReader(file).read(values);
}

}  // namespace orrery::graphfile
