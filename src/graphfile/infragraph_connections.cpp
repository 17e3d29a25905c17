// Makes edges of the connections of older schemas of InfraGraph, and counts what they name.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "infragraph_document.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

using Component = InfragraphDocument::Component;
using Connection = InfragraphDocument::Connection;
using Device = InfragraphDocument::Device;
using Instance = InfragraphDocument::Instance;
using ComponentKind = ComponentGraph::Kind;

/// A component behind the packages that it is in, outermost first.
using Chain = std::vector<Component*>;

class ConnectionSettler {
 public:
  explicit ConnectionSettler(InfragraphDocument& document) : document_(document), file_(&document.file) {}

  void settle() {
    if (document_.is_older) leave_out_unused();
    check_names();
    for (Device& device : document_.devices) settle_device(device);
    file_ = &document_.file;
    for (const Connection& connection : document_.connections)
      add_edges(connection, ends_of_instance(connection, connection.a), ends_of_instance(connection, connection.b),
                document_.edges);
    document_.connections.clear();
    for (const Instance& instance : document_.instances) note_unnamed(instance, "the infrastructure");
    for (const Device& device : document_.devices)
      for (const Component& component : device.components)
        note_unnamed(component, fmt::format("device '{}'", cited(device.name)));
  }

 private:
  using Endpoint = InfragraphDocument::Endpoint;

  [[noreturn]] void fail(std::string_view where, std::string_view found, std::string_view expected,
                         std::string_view hint = {}) const {
    throw Error(ErrorCode::bad_input, {.file = *file_}, fmt::format("{} {}", where, found), expected, hint);
  }

  void leave_out_unused() {
    std::set<std::string_view> used;
    for (const Connection& connection : document_.connections)
      used.insert({connection.a.instance, connection.b.instance});
    const auto is_left_out = [&](const Instance& instance) {
      return document_.find_device(instance.device) == nullptr && !used.contains(instance.name);
    };
    if (std::ranges::all_of(document_.instances, is_left_out)) return;
    for (const Instance& instance : document_.instances)
      if (is_left_out(instance))
        document_.notes.push_back(fmt::format(
            "instance '{}' is of device '{}', which is not there, and is left out, as no connection uses it",
            cited(instance.name), cited(instance.device)));
    std::erase_if(document_.instances, is_left_out);
  }
  void check_names() {
    std::map<std::string_view, const Device*> devices;
    for (const Device& device : document_.devices) {
      const auto [other, is_new] = devices.emplace(device.name, &device);
      if (is_new) continue;
      file_ = &device.file;
      fail(fmt::format("device '{}'", cited(device.name)),
           other->second->file == device.file ? "is there twice" : fmt::format("is in {}, too", other->second->file),
           "each device once");
    }
    if (document_.instances.empty())
      fail("the description", "has no instances", "a lone device, or instances of devices",
           "A file of devices goes with an infrastructure that has instances of them.");
    for (Instance& instance : document_.instances) {
      if (!instances_.emplace(instance.name, &instance).second)
        fail(fmt::format("instance '{}'", cited(instance.name)), "is there twice", "each instance once");
      (void)device_of("instance", instance.name, instance.device);
    }
  }
  Device& device_of(std::string_view what, std::string_view name, std::string_view device) {
    Device* const found = document_.find_device(device);
    if (found == nullptr)
      fail(fmt::format("{} '{}'", what, cited(name)),
           fmt::format("is of device '{}', which is not there", cited(device)), "a name of devices",
           missing_device_hint);
    return *found;
  }

  // --- the connections of a device ---

  void settle_device(Device& device) {
    if (device.connections.empty()) return;
    file_ = &device.file;
    const auto spread = spread_over_packages(device);
    std::map<std::pair<Component*, std::uint32_t>, std::set<std::string>> xpus_at;
    for (const Connection& connection : device.connections) {
      if (is_in_each_package(device, connection, spread)) {
        add_edges(connection, {{{}, path_in_each(device, connection.a)}}, {{{}, path_in_each(device, connection.b)}},
                  device.edges);
        continue;
      }
      const auto a = ends_in_device(connection, connection.a, device),
                 b = ends_in_device(connection, connection.b, device);
      add_edges(connection, a, b, device.edges);
      for (const auto& [end, others, other] :
           {std::tuple(&connection.a, &b, &connection.b), std::tuple(&connection.b, &a, &connection.a)})
        if (Component* const custom = custom_at(device, *end); custom != nullptr && is_xpu(device, *other))
          for (const Endpoint& xpu : *others) xpus_at[{custom, end->index}].insert(xpu.component);
    }
    device.connections.clear();
    // Older schemas have no type for switches.
    for (const auto& [at, xpus] : xpus_at)
      if (xpus.size() > 1) at.first->kind = ComponentKind::network_switch;
  }
  Component* custom_at(Device& device, const Connection::End& end) const {
    const auto found = std::ranges::find(device.components, end.component, &Component::name);
    return found != device.components.end() && end.instance.empty() && !found->is_device &&
                   (found->kind == ComponentKind::custom || found->kind == ComponentKind::network_switch)
               ? &*found
               : nullptr;
  }
  bool is_xpu(Device& device, const Connection::End& end) {
    if (!end.instance.empty()) return false;
    const auto chains = chains_to(device, end.component);
    return chains.size() == 1 && chains[0].back()->kind == ComponentKind::xpu;
  }

  // --- packages ---

  std::vector<Chain> chains_to(Device& device, std::string_view name) {
    for (Component& component : device.components)
      if (component.name == name) return {{&component}};
    std::vector<Chain> found;
    for (Component& component : device.components)
      if (component.is_package)
        for (Chain& chain : chains_to(*document_.find_device(component.device), name)) {
          chain.insert(chain.begin(), &component);
          found.push_back(std::move(chain));
        }
    return found;
  }
  Chain chain_to(const Connection& connection, Device& device, std::string_view name) {
    auto chains = chains_to(device, name);
    if (chains.empty())
      fail(connection.place,
           fmt::format("names the component '{}', which device '{}' does not have", cited(name), cited(device.name)),
           "a component of the device");
    if (chains.size() > 1)
      fail(connection.place, fmt::format("names the component '{}', which is in several others", cited(name)),
           "a name that is there once");
    return std::move(chains[0]);
  }
  /// Returns how many of a component are in each of the outermost packages.
  static std::uint64_t in_each(const Chain& chain) {
    std::uint64_t count = 1;
    for (std::size_t k = 1; k < chain.size() && count < most_infragraph_count; ++k) count *= chain[k]->count;
    return count;
  }

  using Spread = std::set<std::tuple<std::string, std::string, std::string>>;
  static std::tuple<std::string, std::string, std::string> pair_of(const Connection& connection) {
    const auto& [a, b] = std::minmax(connection.a.component, connection.b.component);
    return {a, b, connection.link};
  }
  bool is_within_one(Device& device, const Connection& connection) {
    if (!connection.a.instance.empty() || !connection.b.instance.empty()) return false;
    const Chain a = chain_to(connection, device, connection.a.component),
                b = chain_to(connection, device, connection.b.component);
    return a.size() > 1 && b.size() > 1 && a[0] == b[0] && connection.a.index < in_each(a) &&
           connection.b.index < in_each(b);
  }
  /// Returns the pairs of parts that connections join in several packages, one by one.
  Spread spread_over_packages(Device& device) {
    Spread spread;
    if (std::ranges::none_of(device.components, &Component::is_package)) return spread;
    for (const Connection& connection : device.connections)
      if (!is_within_one(device, connection)) spread.insert(pair_of(connection));
    return spread;
  }
  bool is_in_each_package(Device& device, const Connection& connection, const Spread& spread) {
    return std::ranges::any_of(device.components, &Component::is_package) && is_within_one(device, connection) &&
           !spread.contains(pair_of(connection));
  }
  std::string path_in_each(Device& device, const Connection::End& end) {
    const Chain chain = std::move(chains_to(device, end.component)[0]);
    return chain[0]->name + "." + path_of({chain.begin() + 1, chain.end()}, end.index);
  }

  // --- ends ---

  /// Notes that a component or an instance is used.
  template <class Counted>
  static void count(Counted& counted, std::uint64_t index) {
    if (counted.is_counted || index >= most_infragraph_count) return;
    counted.count = std::max(counted.count, static_cast<std::uint32_t>(index + 1));
    counted.named.insert(static_cast<std::uint32_t>(index));
  }
  /// Tells of indices that were left out, perhaps because one that is there is misspelt.
  template <class Counted>
  void note_unnamed(const Counted& counted, std::string_view where) {
    const std::size_t named = counted.named.size();
    if (named > 0 && named < counted.count)
      document_.notes.push_back(fmt::format("{} of {} '{}' of {} are named by no connection", counted.count - named,
                                            counted.count, cited(counted.name), where));
  }
  /// Returns "xpu[1].hopper[0]" for the number of a part, which counts over all packages.
  static std::string path_of(const Chain& chain, std::uint64_t index) {
    std::string path;
    for (std::size_t k = chain.size(); k-- > 0;) {
      const std::uint64_t own = k == 0 ? index : index % chain[k]->count;
      path = fmt::format("{}[{}]{}{}", chain[k]->name, own, path.empty() ? "" : ".", path);
      if (k == 0)
        count(*chain[k], own);
      else
        index /= chain[k]->count;
    }
    return path;
  }
  /// Adds the paths of the parts of a package that are of its own kind.
  void add_parts(const Component& package, const std::string& path, std::vector<std::string>& paths) {
    for (const Component& part : document_.find_device(package.device)->components)
      if (part.kind == package.kind)
        for (std::uint32_t i = 0; i < part.count; ++i) {
          const std::string own = fmt::format("{}.{}[{}]", path, part.name, i);
          if (paths.size() >= most_infragraph_count)
            fail("the description", "has too many components", fmt::format("{} at the most", most_infragraph_count));
          if (part.is_package)
            add_parts(part, own, paths);
          else if (!part.is_device)
            paths.push_back(own);
        }
  }
  std::vector<std::string> paths_of(const Connection& connection, const Connection::End& end, Device& device) {
    const Chain chain = chain_to(connection, device, end.component);
    const Component& last = *chain.back();
    const std::string path = path_of(chain, end.index);
    if (!last.is_device) return {path};
    std::vector<std::string> paths;
    if (last.is_package) add_parts(last, path, paths);
    if (paths.empty())
      fail(connection.place, fmt::format("ends at '{}', which has components of its own", cited(end.component)),
           last.is_package ? "one of these components, or one of the type of the whole" : "a component");
    return paths;
  }
  std::vector<Endpoint> ends_in_device(const Connection& connection, const Connection::End& end, Device& device) {
    std::vector<Endpoint> ends;
    if (end.instance.empty()) {
      for (std::string& path : paths_of(connection, end, device)) ends.push_back({{}, std::move(path)});
      return ends;
    }
    const auto inner = std::ranges::find(device.components, end.instance, &Component::name);
    count(*inner, end.instance_index);
    for (const std::string& path :
         paths_of(connection, end, device_of("instance", inner->name, inner->name_of_device())))
      ends.push_back({fmt::format("{}[{}]", end.instance, end.instance_index), path});
    return ends;
  }
  std::vector<Endpoint> ends_of_instance(const Connection& connection, const Connection::End& end) {
    const auto found = instances_.find(end.instance);
    if (found == instances_.end())
      fail(connection.place, fmt::format("names the instance '{}', which is not there", cited(end.instance)),
           "a name of instances");
    Instance& instance = *found->second;
    count(instance, end.instance_index);
    std::vector<Endpoint> ends;
    for (const std::string& path : paths_of(connection, end, *document_.find_device(instance.device)))
      ends.push_back({fmt::format("{}[{}]", end.instance, end.instance_index), path});
    return ends;
  }
  void add_edges(const Connection& connection, const std::vector<Endpoint>& from, const std::vector<Endpoint>& to,
                 std::vector<InfragraphDocument::Edge>& edges) const {
    for (const Endpoint& a : from)
      for (const Endpoint& b : to) {
        if (edges.size() >= most_infragraph_count)
          fail("the description", "has too many links", fmt::format("{} at the most", most_infragraph_count));
        if (a.instance == b.instance && a.component == b.component)
          fail(connection.place, "joins a component with itself", "two components");
        edges.push_back({connection.place, a, b, InfragraphDocument::Scheme::one_to_one, connection.link});
      }
  }

  InfragraphDocument& document_;
  const std::string* file_;  // of what is in hand
  std::map<std::string_view, Instance*> instances_;
};

}  // namespace

void settle_connections(InfragraphDocument& document) { ConnectionSettler(document).settle(); }

}  // namespace orrery::graphfile
