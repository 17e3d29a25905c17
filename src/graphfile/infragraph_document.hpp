#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/topology/component_graph.hpp"

namespace orrery::graphfile {

using topology::ComponentGraph;

/// A count may not be larger.
inline constexpr std::uint32_t most_infragraph_count = 1U << 22U;

/// A description of InfraGraph as its file has it, nothing expanded.
struct InfragraphDocument {
  struct Component {
    std::string name;
    std::uint32_t count = 1;
    bool is_device = false;  ///< it stands for a device
    ComponentGraph::Kind kind = ComponentGraph::Kind::custom;
    std::string device = {};             ///< empty: the one of its name
    bool is_counted = true;              ///< no: connections say how many there are
    bool is_package = false;             ///< it has components of its own, which are those of `device`
    std::set<std::uint32_t> named = {};  ///< indices that connections name, if they determine the count

    const std::string& name_of_device() const { return device.empty() ? name : device; }
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
  /// An edge as older schemas have it: "xpu.0.pcie.nic.3" or "host.0.nic.1.eth.leaf.0.port.2".
  struct Connection {
    struct End {
      std::string instance;  ///< empty: the device at hand
      std::uint32_t instance_index = 0;
      std::string component;
      std::uint32_t index = 0;
    };
    std::string place;  ///< "connections[3] of device 'dgx'"
    End a, b;
    std::string link;
  };
  struct Device {
    std::string name;
    std::string file;
    std::vector<Component> components;
    std::vector<ComponentGraph::LinkKind> links;
    std::vector<Edge> edges;
    std::vector<Connection> connections;  ///< connections from which settle_connections makes edges
  };
  struct Instance {
    std::string name, device;
    std::uint32_t count = 1;
    bool is_counted = true;              ///< no: connections say how many there are
    std::set<std::uint32_t> named = {};  ///< indices that connections name, if they determine the count
  };

  std::string file, name;
  bool is_older = false;  ///< its schema is older than 2.4
  std::vector<Device> devices;
  std::vector<ComponentGraph::LinkKind> links;
  std::vector<Instance> instances;
  std::vector<Edge> edges;
  std::vector<Connection> connections;         ///< connections from which settle_connections makes edges
  std::map<std::string, std::uint32_t> ranks;  ///< ranks by component
  std::vector<std::string> notes;

  const Device* find_device(std::string_view device) const { return find_in(devices, device); }
  Device* find_device(std::string_view device) { return find_in(devices, device); }
  /// Returns whether an instance or a component is of a device of this file.
  bool uses_devices_of(std::string_view of_file) const {
    const auto is_of_file = [&](std::string_view called) {
      const Device* const device = find_device(called);
      return device != nullptr && device->file == of_file;
    };
    for (const Instance& instance : instances)
      if (is_of_file(instance.device)) return true;
    for (const Device& device : devices)
      for (const Component& component : device.components)
        if (component.is_device && !component.is_package && is_of_file(component.name_of_device())) return true;
    return false;
  }

 private:
  template <class Devices>
  static auto find_in(Devices& devices, std::string_view name) -> decltype(devices.data()) {
    for (auto& device : devices)
      if (device.name == name) return &device;
    return nullptr;
  }
};

/// Returns the values of a YAML or JSON text. Scalars of YAML are texts. Throws Error (bad_input).
nlohmann::json infragraph_values(std::string_view text, const std::string& file);
/// Says whether values are a description of an older schema: with connections, or with types of components.
bool is_older_infragraph(const nlohmann::json& values);
/// Each of these reads the values of a description. Throws Error (bad_input), as parse_infragraph does.
InfragraphDocument read_infragraph_document(const nlohmann::json& values, const std::string& file);
InfragraphDocument read_older_infragraph(const nlohmann::json& values, const std::string& file);
/// Checks that each name is there once and each device is known, and makes edges of connections, with the counts that
/// follow from these. An instance of an older schema whose device is unknown is left out if no connection uses it.
void settle_connections(InfragraphDocument& document);

/// What to do if a device is not there.
inline constexpr std::string_view missing_device_hint =
    "If another file has the device, name that file: 'orrery show graph FILE --devices OTHER', or 'devices: [OTHER]' "
    "beside 'file' in system.network.graph.";

}  // namespace orrery::graphfile
