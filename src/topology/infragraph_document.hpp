#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/topology/component_graph.hpp"

namespace orrery::topology {

/// A description of InfraGraph as its file has it, nothing expanded.
struct InfragraphDocument {
  struct Component {
    std::string name;
    std::uint32_t count = 1;
    bool is_device = false;  ///< it stands for the device of its name
    ComponentGraph::Kind kind = ComponentGraph::Kind::custom;
  };
  struct Endpoint {
    std::string instance;   ///< with its slice; of the edges of a device the path before the component
    std::string component;  ///< with its slices
  };
  enum class Scheme : std::uint8_t { one_to_one, many_to_many, ring };
  struct Edge {
    std::string place;  ///< "edges[3] of device 'dgx'"
    Endpoint a, b;
    Scheme scheme = Scheme::many_to_many;
    std::string link;
  };
  struct Device {
    std::string name;
    std::vector<Component> components;
    std::vector<ComponentGraph::LinkKind> links;
    std::vector<Edge> edges;
  };
  struct Instance {
    std::string name, device;
    std::uint32_t count = 1;
  };

  std::string file, name;
  std::vector<Device> devices;
  std::vector<ComponentGraph::LinkKind> links;
  std::vector<Instance> instances;
  std::vector<Edge> edges;
  std::map<std::string, std::uint32_t> ranks;  ///< by component
  std::vector<std::string> notes;

  const Device* find_device(std::string_view device) const {
    for (const Device& known : devices)
      if (known.name == device) return &known;
    return nullptr;
  }
};

/// Returns the values of a YAML or JSON text. Scalars of YAML are texts. Throws Error (bad_input).
nlohmann::json infragraph_values(std::string_view text, const std::string& file);
/// Reads the values of a description. Throws Error (bad_input), as parse_infragraph does.
InfragraphDocument read_infragraph_document(const nlohmann::json& values, const std::string& file);

}  // namespace orrery::topology
