#include <algorithm>
#include <charconv>
#include <cmath>

#include "keys.hpp"

namespace orrery::config {
namespace {

using topology::Shape;

/// Returns the numbers of "4x8" or "4x4x2"; none if the text is of another form.
std::vector<std::uint32_t> sizes_in(std::string_view text) {
  std::vector<std::uint32_t> sizes;
  const char* at = text.data();
  const char* const last = at + text.size();
  for (;;) {
    std::uint32_t size = 0;
    const auto [end, error] = std::from_chars(at, last, size);
    if (error != std::errc() || size == 0 || *at == '0') return {};
    sizes.push_back(size);
    if (end == last) return sizes;
    if (*end != 'x') return {};
    at = end + 1;
  }
}

/// Returns the sizes of the rings of a torus: of [4, 8] or 4x8, or of one number, which is that of all its NPUs.
std::vector<std::uint32_t> as_sides(const Value& value, const std::string& key, std::uint32_t rings) {
  std::vector<std::uint32_t> sides;
  if (value.kind == Value::Kind::sequence && value.items.size() <= rings)
    for (std::size_t i = 0; i < value.items.size(); ++i)
      sides.push_back(as_count(value.items[i], fmt::format("{}.{}", key, i)));
  else if (value.kind == Value::Kind::scalar)
    sides = sizes_in(value.text);
  if (sides.size() == rings) return sides;
  if (sides.size() == 1 && value.kind == Value::Kind::scalar) {
    const auto side = static_cast<std::uint32_t>(std::lround(std::pow(sides[0], 1.0 / rings)));
    std::uint64_t whole = 1;
    for (std::uint32_t k = 0; k < rings; ++k) whole *= side;
    if (whole == sides[0]) return std::vector<std::uint32_t>(rings, side);
  }
  throw Error(ErrorCode::bad_input, value.place(key), fmt::format("found {}", value.description()),
              rings == 2 ? "the sizes of 2 rings such as 4x8 or [4, 8], or a square number of NPUs"
                         : "the sizes of 3 rings such as 4x4x8 or [4, 4, 8], or a cubic number of NPUs");
}

/// Returns how the size of an entry is read: one number, or those of the rings of a torus.
constexpr Handling<DimensionEntry> size_handling() {
  return {[](const Value& value, const std::string& path, DimensionEntry& entry, Reading&) {
            if (entry.shape.rings > 1)
              entry.sizes = as_sides(value, path, entry.shape.rings);
            else
              entry.sizes = {as_count(value, path)};
          },
          [](const DimensionEntry& entry, std::string_view path, Writer& writer) {
            writer.put(path, fmt::format("{}", fmt::join(entry.sizes, "x")));
          },
          [](const DimensionEntry& a, const DimensionEntry& b) { return a.sizes == b.sizes; }};
}

bool has_no_graph(const DimensionEntry&, const Reading& reading) {
  return reading.configuration.execution.network.graph == nullptr;
}

bool has_own_links(const DimensionEntry& entry) { return !entry.lies_on_graph; }

bool has_own_routing(const DimensionEntry& entry) { return entry.dimension.routing != topology::Routing::automatic; }

bool has_own_latency(const DimensionEntry& entry) { return has_own_links(entry) && !entry.flits; }

bool needs_latency(const DimensionEntry& entry, const Reading& reading) {
  return has_no_graph(entry, reading) && !entry.flits;
}

/// Throws Error (bad_input) for a key of links where the graph says what they are.
void refuse_on_graph(const DimensionEntry& entry, const Place& place, const Reading& reading) {
  if (!has_no_graph(entry, reading))
    throw Error(ErrorCode::bad_input, place, "found a property of links beside system.network.graph, which has them",
                "dimensions with a shape and a size only");
}

/// Throws Error (bad_input) for a latency where routers say what it is.
void refuse_latency(const DimensionEntry& entry, const Place& place, const Reading& reading) {
  refuse_on_graph(entry, place, reading);
  if (entry.flits)
    throw Error(ErrorCode::bad_input, place, "found it beside `flits`, whose routers say what a hop takes",
                "no latency, but flits.link and flits.route");
}

constexpr Handling<DimensionEntry> flit_handling() {
  return {read_flits,
          [](const DimensionEntry& entry, std::string_view, Writer& writer) {
            if (entry.flits) write_keys(flit_keys(), *entry.flits, writer);
          },
          [](const DimensionEntry& a, const DimensionEntry& b) {
            return a.flits.has_value() == b.flits.has_value() && (!a.flits || a.flits->rules == b.flits->rules);
          }};
}

const topology::ShapeParameter* parameter_of(Shape shape, std::string_view name) {
  const auto found = std::ranges::find(shape->parameters, name, &topology::ShapeParameter::name);
  return found == shape->parameters.end() ? nullptr : &*found;
}

/// Returns the key of a parameter of shapes. Shapes may share the name of a parameter.
KeyInfo parameter_info(const topology::ShapeParameter& parameter) {
  const std::string shapes = names_where<topology::ShapeType>([&](const topology::ShapeType& shape) {
    return std::ranges::find(shape.parameters, parameter.name, &topology::ShapeParameter::name) !=
           shape.parameters.end();
  });
  const Default otherwise =
      parameter.default_value == nullptr ? Default::needed() : Default::described("by the other parameters");
  return {.path = fmt::format("system.network.dimensions.{}", parameter.name),
          .becomes = {},
          .help = std::string(parameter.help),
          .example = std::string(parameter.example),
          .type = count().info(),
          .otherwise = otherwise,
          .default_text = std::string(parameter.default_value == nullptr ? otherwise.text() : parameter.default_text),
          .only_with = fmt::format("shape: {}", shapes)};
}

/// The key of a parameter, which only the shapes that have the parameter know.
class ParameterKey final : public AnyKey {
 public:
  ParameterKey(KeyInfo info, std::string_view name) : AnyKey(std::move(info)), name_(name) {}

  bool applies(const void* target) const override { return parameter_of(of(target).shape.shape, name_) != nullptr; }
  void prepare(void* target) const override {
    const auto* const own = parameter_of(of(target).shape.shape, name_);
    value(target) = own->default_value == nullptr ? 0 : own->default_value(of(target).dimension);
  }
  void take(const Value& given, const std::string& path, void* target, Reading& reading) const override {
    value(target) = count().read(given, path, reading);
  }
  void write(const void* target, Writer& writer) const override {
    if (applies(target)) writer.put(info().path, fmt::to_string(of(target).dimension.parameter(name_)));
  }
  bool same(const void* a, const void* b) const override {
    return of(a).dimension.parameter(name_) == of(b).dimension.parameter(name_);
  }

 private:
  static const DimensionEntry& of(const void* target) { return *static_cast<const DimensionEntry*>(target); }
  std::uint32_t& value(void* target) const { return static_cast<DimensionEntry*>(target)->dimension.parameters[name_]; }

  std::string name_;
};

constexpr Row<DimensionEntry> dimension_rows[] = {
    {"system.network.dimensions.shape", "how the NPUs of a dimension group are joined", "Ring", Default::needed(),
     word<shapes>(), [](auto& entry) { return &entry.shape; }, see("network.md"),
     prepare([](DimensionEntry& entry) { entry.sizes = {0}; })},
    {"system.network.dimensions.size",
     "NPUs in one group of the dimension; for a torus or a Mesh2D the sizes of its rings or rows, as `4x8`, or the "
     "number of its NPUs",
     "8", Default::needed(), ValueInfo("whole number", "a whole number, 1 or more", "-", "1 or more"), size_handling(),
     prepare([](DimensionEntry& entry) { entry.sizes.assign(entry.shape.rings, 0); })},
    {"system.network.dimensions.bandwidth", "bandwidth of one link", "400 GB/s",
     Default::described("that of the graph; needed without one"), bandwidth(),
     [](auto& entry) { return &entry.dimension.bandwidth; },
     needed_if(has_no_graph, "there is no system.network.graph"),
     prepare([](DimensionEntry& entry) { entry.dimension.bandwidth = Bandwidth::from_bytes_per_ns(1); }),
     check(refuse_on_graph), written_if(has_own_links)},
    {"system.network.dimensions.flits",
     "routers of a Mesh2D, a Torus2D or a Crossbar that are simulated flit by flit; may be `{}`",
     "{virtual-channels: 4, buffer: 8}", Default::described("the links of the shape"),
     ValueInfo("mapping", "a mapping of properties of routers", "-", "any"), flit_handling(), see("flit-networks.md"),
     check(refuse_on_graph)},
    {"system.network.dimensions.latency", "latency of one hop", "500 ns",
     Default::described("that of the graph or of the routers of flits; needed without these"), nanoseconds(),
     [](auto& entry) { return &entry.dimension.latency_ns; },
     needed_if(needs_latency, "there are neither flits nor a system.network.graph"), check(refuse_latency),
     written_if(has_own_latency)},
    {"system.network.dimensions.in-switch-operations",
     "Switch only: reductions and multicasts that the switch of a dimension group carries out at a time, "
     "for `inSwitch`",
     "4", Default::built_in(), count(0), [](auto& entry) { return &entry.dimension.in_switch_operations; },
     written_unless_default()},
    {"system.network.dimensions.links", "links side by side where the shape has one; each message is spread over them",
     "2", Default::built_in(), count(), [](auto& entry) { return &entry.dimension.links; }, written_unless_default()},
    {"system.network.dimensions.oversubscription",
     "FatTree: NPUs of an edge switch for each of its links up, a divisor of k/2; Switch: bandwidth of "
     "its links together over what passes it at a time",
     "2", Default::built_in(), number("1 to 1e6"), [](auto& entry) { return &entry.dimension.oversubscription; },
     written_unless_default()},
    {"system.network.dimensions.routing", "how routers choose among the routes to an NPU", "minimal",
     Default::described("`adaptive` in the congestion-aware network, without packet-size, circuits and `rules: "
                        "astra-sim`; otherwise `minimal`"),
     word<shape_routings>(), [](auto& entry) { return &entry.dimension.routing; },
     only_if([](const DimensionEntry& entry) { return entry.shape.shape->has_alternatives; }, "shape: Dragonfly"),
     check(refuse_on_graph), see("network.md, *FatTree and Dragonfly*"), written_if(has_own_routing)},
    {"system.network.dimensions.port",
     "port of an NPU through which its links lead; dimensions that name one port share its rate", "nic",
     Default::described("shared by consecutive Switches whose links have one bandwidth, otherwise a separate one"),
     any_text("a name"), [](auto& entry) { return &entry.dimension.port; }, check(refuse_on_graph),
     written_unless_default()},
};

}  // namespace

const Keys<DimensionEntry>& dimension_keys() {
  static const Keys<DimensionEntry> all = [] {
    Keys<DimensionEntry> keys("system.network.dimensions", dimension_rows, "system.network.dimensions");
    for (const Shape shape : Shape::all())
      for (const topology::ShapeParameter& parameter : shape->parameters)
        if (KeyInfo info = parameter_info(parameter); keys.find(info.path) == nullptr)
          keys.add(std::make_unique<ParameterKey>(std::move(info), parameter.name));
    return keys;
  }();
  return all;
}

}  // namespace orrery::config
