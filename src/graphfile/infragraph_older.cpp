// Reads descriptions of InfraGraph of schemas before 2.4, which list connections one by one.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infragraph_reader.hpp"
#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

using Json = nlohmann::json;
using Connection = InfragraphDocument::Connection;
using Device = InfragraphDocument::Device;

constexpr int deepest_packages = 16;
constexpr std::string_view connection_of_device = "COMPONENT.INDEX.LINK.COMPONENT.INDEX, such as xpu.0.pcie.nic.3",
                           connection_of_instances =
                               "INSTANCE.INDEX.COMPONENT.INDEX.LINK.INSTANCE.INDEX.COMPONENT.INDEX, such as "
                               "host.0.nic.1.eth.leaf.0.port.2";

std::vector<std::string_view> split_at_points(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size(); at += parts.back().size() + 1)
    parts.push_back(text.substr(at, text.find('.', at) - at));
  return parts;
}

class OlderReader : InfragraphReader {
 public:
  explicit OlderReader(const std::string& file) : InfragraphReader(file, true) {}

  InfragraphDocument read(const Json& values) {
    const Json* const wrapped = find(values, "infrastructure", "the description");
    const Json& whole = wrapped != nullptr ? *wrapped : values;
    if (whole.contains("components"))
      read_device(whole);
    else
      read_infrastructure(whole);
    if (const Json* const annotations = find(values, "annotations", "the description")) read_ranks(*annotations);
    add_instance_of_lone_device();
    take_instances_into_device();
    return std::move(document_);
  }

 private:
  void read_infrastructure(const Json& at) {
    constexpr std::string_view where = "the infrastructure";
    refuse_edges(at, where);
    note_others(at, {"name", "description", "devices", "device", "links", "instances", "connections"}, "infrastructure",
                where);
    document_.name = text(at, "name", where).value_or("");
    for (const char* const key : {"devices", "device"}) {
      const Json* const one = find(at, key, where);
      if (one != nullptr && one->is_object())
        read_device(*one);
      else
        for (const Json& device : list(at, key, where)) read_device(device);
    }
    document_.links = read_links(at, std::string(where));
    for (const Json& entry : list(at, "instances", where)) {
      const std::string of = fmt::format("instances[{}]", document_.instances.size());
      InfragraphDocument::Instance instance{plain_name(entry, of), name(entry, "device", of)};
      note_others(entry, {"name", "description", "device", "count"}, "instance", of);
      const auto stated = count(entry, of);
      instance.count = stated.value_or(1);
      instance.is_counted = stated.has_value();
      document_.instances.push_back(std::move(instance));
    }
    document_.connections = read_connections(at, std::string(where), true);
  }

  void read_device(const Json& at) {
    Device device;
    std::string where = fmt::format("devices[{}]", document_.devices.size());
    device.name = name(at, "name", where);
    device.file = document_.file;
    where = fmt::format("device '{}'", cited(device.name));
    refuse_edges(at, where);
    note_others(at, {"name", "description", "components", "links", "connections"}, "device", where);
    read_components(at, where, device, 0);
    device.links = read_links(at, where);
    device.connections = read_connections(at, where, false);
    document_.devices.push_back(std::move(device));
  }
  void read_components(const Json& at, const std::string& of, Device& device, int depth) {
    if (depth > deepest_packages)
      fail(of, "is too deep in others", fmt::format("{} components in each other at the most", deepest_packages));
    for (const Json& entry : list(at, "components", of)) {
      const std::string where = fmt::format("component {} of {}", device.components.size(), of);
      InfragraphDocument::Component component;
      component.name = plain_name(entry, where);
      note_others(entry,
                  {"name", "description", "count", "type", "choice", "external", "components", "custom", "device",
                   "cpu", "xpu", "npu", "nic", "memory", "port", "switch"},
                  "component", where);
      const auto stated = count(entry, where);
      component.count = stated.value_or(1);
      component.is_counted = stated || depth > 0;
      const char* const key = entry.contains("type") ? "type" : "choice";
      const auto kind = text(entry, key, where);
      if (const auto choice = text(entry, "choice", where); choice && choice != kind)
        fail(where, fmt::format("has the type '{}' and the choice '{}'", cited(*kind), cited(*choice)), "one of them");
      component.is_package = find(entry, "components", where) != nullptr;
      component.is_device = component.is_package || kind == "device";
      if (kind && kind != "device") component.kind = kind_of(*kind, key, where);
      if (component.is_package) {
        Device package;
        package.name = component.device = fmt::format("{}.{}", device.name, component.name);
        package.file = document_.file;
        read_components(entry, fmt::format("component '{}' of {}", cited(component.name), of), package, depth + 1);
        document_.devices.push_back(std::move(package));
      }
      device.components.push_back(std::move(component));
    }
  }

  std::string plain_name(const Json& at, const std::string& where) const {
    std::string found = name(at, "name", where);
    if (found.find_first_of(".[]") != std::string::npos)
      fail(where, fmt::format("has the name '{}'", cited(found)), "a name without points and brackets");
    return found;
  }
  void refuse_edges(const Json& at, std::string_view where) const {
    if (find(at, "edges", where) != nullptr)
      fail(where, "has edges, but connections or types of an older schema are there, too",
           "one schema of InfraGraph in a file");
  }

  // --- connections ---

  std::vector<Connection> read_connections(const Json& at, const std::string& of, bool is_of_instances) const {
    std::vector<Connection> connections;
    for (const Json& entry : list(at, "connections", of))
      connections.push_back(
          read_connection(entry, fmt::format("connections[{}] of {}", connections.size(), of), is_of_instances));
    return connections;
  }
  Connection read_connection(const Json& entry, std::string place, bool is_of_instances) const {
    const std::string_view expected = is_of_instances ? connection_of_instances : connection_of_device;
    if (!entry.is_string()) fail(place, "is no text", expected);
    const std::string& text = entry.get_ref<const std::string&>();
    const auto parts = split_at_points(text);
    const std::size_t of_end = is_of_instances ? 4 : 2;
    if (parts.size() != 2 * of_end + 1 || std::ranges::any_of(parts, &std::string_view::empty))
      fail(place, fmt::format("is '{}', of {}", cited(text), counted(parts.size(), "part")), expected);
    Connection connection{.place = std::move(place), .a = {}, .b = {}, .link = std::string(parts[of_end])};
    for (const auto& [end, first] : {std::pair(&connection.a, std::size_t{0}), std::pair(&connection.b, of_end + 1)}) {
      std::size_t part = first;
      if (is_of_instances) {
        end->instance = parts[part++];
        end->instance_index = index(parts[part++], connection.place, text, expected);
      }
      end->component = parts[part++];
      end->index = index(parts[part], connection.place, text, expected);
    }
    return connection;
  }
  std::uint32_t index(std::string_view part, std::string_view place, std::string_view text,
                      std::string_view expected) const {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value >= most_infragraph_count)
      fail(place, fmt::format("is '{}', where '{}' is no index", cited(text), cited(part)), expected);
    return value;
  }

  // --- devices without an infrastructure ---

  /// Returns the devices that are no packages.
  std::vector<Device*> own_devices() {
    std::set<std::string_view> packages;
    for (const Device& device : document_.devices)
      for (const auto& component : device.components)
        if (component.is_package) packages.insert(component.device);
    std::vector<Device*> own;
    for (Device& device : document_.devices)
      if (!packages.contains(device.name)) own.push_back(&device);
    return own;
  }
  void add_instance_of_lone_device() {
    const auto own = own_devices();
    if (own.size() != 1 || !document_.instances.empty() || !document_.connections.empty()) return;
    document_.instances.push_back({own[0]->name, own[0]->name});
    if (document_.name.empty()) document_.name = own[0]->name;
  }

  /// Connections may lead from a device itself to instances: those are devices in it then. The name that stands for the
  /// device is none of the instances, and the links are those of the device.
  void take_instances_into_device() {
    std::set<std::string_view> known;
    for (const auto& instance : document_.instances) known.insert(instance.name);
    std::set<std::string> unknown;
    for (const Connection& connection : document_.connections)
      for (const Connection::End* const end : {&connection.a, &connection.b})
        if (!known.contains(end->instance)) unknown.insert(end->instance);
    if (unknown.size() != 1) return;
    const std::string itself = *unknown.begin();
    Device* const device = device_called(itself);
    if (device == nullptr || !std::ranges::all_of(document_.connections, [&](const Connection& connection) {
          return (connection.a.instance != itself || connection.a.instance_index == 0) &&
                 (connection.b.instance != itself || connection.b.instance_index == 0) &&
                 std::ranges::find(device->links, connection.link, &ComponentGraph::LinkKind::name) !=
                     device->links.end();
        }))
      return;
    for (const auto& instance : document_.instances) {
      if (std::ranges::find(device->components, instance.name, &InfragraphDocument::Component::name) !=
          device->components.end())
        fail(fmt::format("instance '{}'", cited(instance.name)),
             fmt::format("has the name of a component of device '{}'", cited(device->name)), "each name once");
      device->components.push_back({.name = instance.name,
                                    .count = instance.count,
                                    .is_device = true,
                                    .device = instance.device,
                                    .is_counted = instance.is_counted});
    }
    for (Connection& connection : document_.connections) {
      for (Connection::End* const end : {&connection.a, &connection.b})
        if (end->instance == itself) end->instance.clear();
      device->connections.push_back(std::move(connection));
    }
    document_.connections.clear();
    document_.instances = {{itself, device->name}};
    if (document_.name.empty()) document_.name = device->name;
  }
  /// Returns the device of a name, or else the only one that no instance is of.
  Device* device_called(std::string_view called) {
    std::vector<Device*> own = own_devices();
    std::erase_if(own, [&](const Device* device) {
      return std::ranges::find(document_.instances, device->name, &InfragraphDocument::Instance::device) !=
             document_.instances.end();
    });
    const auto named = std::ranges::find(own, called, [](const Device* device) { return device->name; });
    if (named != own.end()) return *named;
    return own.size() == 1 ? own[0] : nullptr;
  }
};

bool is_older_device(const Json& device) {
  if (!device.is_object()) return false;
  if (device.contains("connections")) return true;
  const auto components = device.find("components");
  return components != device.end() && components->is_array() &&
         std::ranges::any_of(*components, [](const Json& component) {
           return component.is_object() && component.contains("type") && !component.contains("choice");
         });
}

}  // namespace

bool is_older_infragraph(const Json& values) {
  if (!values.is_object()) return false;
  const auto wrapped = values.find("infrastructure");
  const Json& whole = wrapped != values.end() && wrapped->is_object() ? *wrapped : values;
  if (whole.contains("device") || is_older_device(whole)) return true;
  const auto devices = whole.find("devices");
  return devices != whole.end() && devices->is_array() && std::ranges::any_of(*devices, is_older_device);
}

InfragraphDocument read_older_infragraph(const Json& values, const std::string& file) {
  return OlderReader(file).read(values);
}

}  // namespace orrery::graphfile
