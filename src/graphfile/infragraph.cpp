// Expands descriptions of InfraGraph: counts, devices in devices, and edges between slices of components.
#include "orrery/graphfile/infragraph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "infragraph_document.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/text.hpp"

namespace orrery::graphfile {
namespace {

using Document = InfragraphDocument;

constexpr std::size_t most_components = std::size_t{1} << 22U, most_component_links = std::size_t{1} << 22U;
constexpr int deepest_devices = 16;

/// A name with a slice as Python has it: "xpu", "xpu[3]", "xpu[0:4]", "xpu[0:8:2]".
struct Slice {
  std::string_view name;
  std::vector<std::uint32_t> indices;
};

class Expander {
 public:
  explicit Expander(const Document& document) : document_(document), file_(&document.file) {
    graph_.file = document.file;
    graph_.name = document.name;
    graph_.notes = document.notes;
    for (const Document::Instance& instance : document.instances) instances_.emplace(instance.name, &instance);
  }

  ComponentGraph expand() {
    add_kinds(document_.links, nullptr);
    for (const Document::Device& device : document_.devices) add_kinds(device.links, &device);
    for (const Document::Instance& instance : document_.instances)
      for (std::uint32_t i = 0; i < instance.count; ++i) {
        const std::string name = fmt::format("{}.{}", instance.name, i);
        graph_.machines.push_back({name, instance.device});
        add_device(*document_.find_device(instance.device), name, 0);
      }
    file_ = &document_.file;
    for (const Document::Edge& edge : document_.edges)
      join(edge, ends_of_infrastructure(edge, edge.a), ends_of_infrastructure(edge, edge.b), nullptr);
    for (const auto& [component, rank] : document_.ranks) {
      const auto found = numbers_.find(component);
      if (found == numbers_.end())
        fail("annotations", fmt::format("name '{}', which is no component", cited(component)), "components");
      graph_.components[found->second].rank = rank;
    }
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(std::string_view where, std::string_view found, std::string_view expected,
                         std::string_view hint = {}) const {
    throw Error(ErrorCode::bad_input, {.file = *file_}, fmt::format("{} {}", where, found), expected, hint);
  }

  void add_kinds(const std::vector<ComponentGraph::LinkKind>& links, const Document::Device* of) {
    for (const ComponentGraph::LinkKind& link : links) {
      kinds_[{of, link.name}] = static_cast<std::uint32_t>(graph_.kinds.size());
      graph_.kinds.push_back(link);
    }
  }

  void add_device(const Document::Device& device, const std::string& prefix, int depth) {
    file_ = &device.file;
    if (depth > deepest_devices)
      fail(fmt::format("device '{}'", cited(device.name)), "is in itself, or too deep in others",
           fmt::format("{} devices in each other at the most", deepest_devices));
    for (const Document::Component& component : device.components)
      for (std::uint32_t i = 0; i < component.count; ++i) {
        std::string name = fmt::format("{}.{}.{}", prefix, component.name, i);
        if (component.is_device) {
          add_device(device_of(component, device), name, depth + 1);
          file_ = &device.file;
          continue;
        }
        if (graph_.components.size() >= most_components)
          fail("the description", "has too many components", fmt::format("{} at the most", most_components));
        if (!numbers_.emplace(name, static_cast<std::uint32_t>(graph_.components.size())).second)
          fail(fmt::format("component '{}'", cited(name)), "is there twice", "each name once in a device");
        graph_.components.push_back(
            {std::move(name), component.kind, static_cast<std::uint32_t>(graph_.machines.size() - 1), {}});
      }
    for (const Document::Edge& edge : device.edges)
      join(edge, ends_of_device(edge, edge.a, device, prefix), ends_of_device(edge, edge.b, device, prefix), &device);
  }
  const Document::Device& device_of(const Document::Component& component, const Document::Device& in) const {
    const Document::Device* const found = document_.find_device(component.name_of_device());
    if (found == nullptr)
      fail(fmt::format("component '{}' of device '{}'", cited(component.name), cited(in.name)),
           "is a device that is not there", "a name of devices", missing_device_hint);
    return *found;
  }

  // --- ends of edges ---

  /// Reads a name with a slice of what is there `count` times.
  Slice slice(const Document::Edge& edge, std::string_view text, std::uint32_t count) const {
    const std::size_t open = text.find('[');
    Slice slice{text.substr(0, open), {}};
    std::int64_t parts[3] = {0, count, 1};
    if (open != std::string_view::npos) {
      if (text.back() != ']')
        fail(edge.place, fmt::format("names '{}'", cited(text)), "NAME[i], NAME[i:j] or NAME[i:j:k]");
      const std::string_view inner = text.substr(open + 1, text.size() - open - 2);
      std::size_t number = 0;
      for (std::size_t at = 0; at <= inner.size(); ++number) {
        const std::string_view part = inner.substr(at, inner.find(':', at) - at);
        if (number > 2 || !read_part(part, parts[number]))
          fail(edge.place, fmt::format("names '{}'", cited(text)),
               "NAME[i], NAME[i:j] or NAME[i:j:k], of numbers from 0");
        at += part.size() + 1;
      }
      if (number == 1) parts[1] = parts[0] + 1;
    }
    if (parts[2] < 1 || parts[1] > count || parts[0] >= parts[1])
      fail(edge.place, fmt::format("names '{}', of which there are {}", cited(text), count),
           "a slice of one or more that are there");
    for (std::int64_t i = parts[0]; i < parts[1]; i += parts[2]) slice.indices.push_back(static_cast<std::uint32_t>(i));
    return slice;
  }
  /// Reads a number of a slice; an empty text leaves it as it is.
  static bool read_part(std::string_view text, std::int64_t& value) {
    if (text.empty()) return true;
    std::uint32_t read = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
    value = read;
    return error == std::errc() && end == text.data() + text.size();
  }

  std::vector<std::uint32_t> ends_of_infrastructure(const Document::Edge& edge, const Document::Endpoint& end) const {
    const std::string_view name = std::string_view(end.instance).substr(0, end.instance.find('['));
    const auto found = instances_.find(name);
    if (found == instances_.end())
      fail(edge.place, fmt::format("names the instance '{}', which is not there", cited(end.instance)),
           "a name of instances");
    const Document::Instance& instance = *found->second;
    std::vector<std::uint32_t> ends;
    for (const std::uint32_t i : slice(edge, end.instance, instance.count).indices)
      add_ends(edge, end.component, *document_.find_device(instance.device), fmt::format("{}.{}", name, i), ends);
    return ends;
  }
  std::vector<std::uint32_t> ends_of_device(const Document::Edge& edge, const Document::Endpoint& end,
                                            const Document::Device& device, const std::string& prefix) const {
    std::vector<std::uint32_t> ends;
    const std::string path = end.instance.empty() ? end.component : end.instance + "." + end.component;
    add_ends(edge, path, device, prefix, ends);
    return ends;
  }
  /// Adds the components that a path of names with slices stands for, the first name slowest.
  void add_ends(const Document::Edge& edge, std::string_view path, const Document::Device& device,
                const std::string& prefix, std::vector<std::uint32_t>& ends) const {
    const std::string_view head = path.substr(0, path.find('.'));
    const std::string_view rest = head.size() < path.size() ? path.substr(head.size() + 1) : std::string_view();
    const std::string_view name = head.substr(0, head.find('['));
    const auto known = std::ranges::find(device.components, name, &Document::Component::name);
    if (known == device.components.end())
      fail(edge.place,
           fmt::format("names the component '{}', which device '{}' does not have", cited(head), cited(device.name)),
           "a component of the device");
    if (known->is_device == rest.empty())
      fail(edge.place, fmt::format("names '{}'", cited(path)),
           known->is_device ? "a component of this device, behind a point" : "no more names: this is no device");
    for (const std::uint32_t i : slice(edge, head, known->count).indices) {
      const std::string full = fmt::format("{}.{}.{}", prefix, name, i);
      if (known->is_device)
        add_ends(edge, rest, device_of(*known, device), full, ends);
      else
        ends.push_back(numbers_.at(full));
    }
  }

  // --- links ---

  void join(const Document::Edge& edge, const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b,
            const Document::Device* of) {
    const auto kind = kinds_.find({of, edge.link});
    if (kind == kinds_.end())
      fail(edge.place, fmt::format("names the link '{}', which is not there", cited(edge.link)),
           of == nullptr ? "a name of links of the infrastructure" : "a name of links of the device");
    joined_.clear();
    switch (edge.scheme) {
      case Document::Scheme::many_to_many:
        if (a.size() * b.size() > most_component_links) too_many_links();
        for (const std::uint32_t one : a)
          for (const std::uint32_t other : b) add_link(one, other, kind->second);
        return;
      case Document::Scheme::one_to_one:
        if (a.size() != b.size())
          fail(edge.place, fmt::format("joins {} and {} one to one", counted(a.size(), "component"), b.size()),
               "as many on both sides");
        for (std::size_t i = 0; i < a.size(); ++i) add_link(a[i], b[i], kind->second);
        return;
      case Document::Scheme::ring:
        if (a != b) fail(edge.place, "joins two different lists as a ring", "the same components as ep1 and ep2");
        for (std::size_t i = 0; i < a.size(); ++i) add_link(a[i], a[(i + 1) % a.size()], kind->second);
    }
  }
  /// Adds a link, unless it would join a component with itself or repeats one of this edge.
  void add_link(std::uint32_t a, std::uint32_t b, std::uint32_t kind) {
    if (a == b || !joined_.insert(std::minmax(a, b)).second) return;
    if (graph_.links.size() >= most_component_links) too_many_links();
    graph_.links.push_back({a, b, kind});
  }
  [[noreturn]] void too_many_links() const {
    fail("the description", "has too many links", fmt::format("{} at the most", most_component_links));
  }

  const Document& document_;
  const std::string* file_;  // of what is in hand
  std::map<std::string_view, const Document::Instance*> instances_;
  ComponentGraph graph_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // components by name
  std::map<std::pair<const Document::Device*, std::string>, std::uint32_t> kinds_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> joined_;  // by the edge in hand
};

Document read_document(std::string_view text, const std::string& file) {
  const nlohmann::json values = infragraph_values(text, file);
  return is_older_infragraph(values) ? read_older_infragraph(values, file) : read_infragraph_document(values, file);
}

}  // namespace

ComponentGraph parse_infragraph(std::string_view text, const std::string& file,
                                std::span<const InfragraphFile> devices) {
  Document document = read_document(text, file);
  for (const InfragraphFile& other : devices) {
    Document more = read_document(other.text, other.name);
    if (more.devices.empty())
      throw Error(ErrorCode::bad_input, {.file = other.name}, "the file has no devices",
                  "devices of a description of InfraGraph");
    if (more.instances.size() > 1 || !more.connections.empty() || !more.edges.empty())
      throw Error(ErrorCode::bad_input, {.file = other.name}, "the file has an infrastructure of its own",
                  "only devices for another file, or one device",
                  "The file with the infrastructure comes first, and files with its devices come after it.");
    std::ranges::move(more.devices, std::back_inserter(document.devices));
    for (const std::string& note : more.notes) document.notes.push_back(fmt::format("{}: {}", other.name, note));
  }
  settle_connections(document);
  for (const InfragraphFile& other : devices)
    if (!document.uses_devices_of(other.name))
      document.notes.push_back(fmt::format("{}: none of its devices is used", other.name));
  return Expander(document).expand();
}

ComponentGraph read_infragraph(const std::filesystem::path& file, std::span<const std::filesystem::path> devices) {
  std::vector<InfragraphFile> others;
  for (const std::filesystem::path& other : devices) others.push_back({read_text(other, {}), other.string()});
  return parse_infragraph(read_text(file, {}), file.string(), others);
}

}  // namespace orrery::graphfile
