#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "formats.hpp"
#include "orrery/config/units.hpp"
#include "section.hpp"

namespace orrery::config {
namespace {

using topology::Dimension;
using topology::Shape;

constexpr std::string_view dimension_example =
    "a list such as [{shape: Ring, size: 8, bandwidth: 400 GB/s, latency: 500 ns}]";

/// What an entry is called: a dimension of a shape, or a torus, which stands for so many Rings.
struct Kind {
  std::string_view name;
  Shape shape;
  std::uint32_t rings = 1;
};

const std::vector<std::pair<std::string_view, Kind>>& kinds() {
  static const std::vector<std::pair<std::string_view, Kind>> all = [] {
    std::vector<std::pair<std::string_view, Kind>> words;
    const auto add = [&](const Kind& kind) { words.emplace_back(kind.name, kind); };
    for (const Shape shape : Shape::all()) add({shape.name(), shape});
    for (const Shape shape : Shape::all())
      for (const topology::ShapeShorthand& shorthand : shape->shorthands)
        add({shorthand.name, shape, shorthand.dimensions});
    return words;
  }();
  return all;
}

std::uint32_t as_size(const Value& value, const std::string& key) { return as_count(value, key); }

/// "4x8" or "4x4x2".
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

/// Of the rings of a torus: [4, 8] or 4x8; one number is that of all its NPUs, a square or a cube.
std::vector<std::uint32_t> as_sides(const Value& value, const std::string& key, std::uint32_t rings) {
  std::vector<std::uint32_t> sides;
  if (value.kind == Value::Kind::sequence)
    for (std::size_t i = 0; i < value.items.size(); ++i)
      sides.push_back(as_size(value.items[i], fmt::format("{}.{}", key, i)));
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

/// "Ring, Mesh, ... or Torus3D".
std::string names_of_kinds() {
  std::string text;
  for (std::size_t i = 0; i < kinds().size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == kinds().size() ? " or " : ", ", kinds()[i].first);
  return text;
}

/// The parameters that the shape has of its own.
void read_parameters(Section& item, Dimension& dimension) {
  for (const topology::ShapeParameter& parameter : dimension.shape->parameters) {
    const std::uint32_t value = parameter.default_value == nullptr
                                    ? item.require(parameter.name, parameter.expected, 0U, as_size)
                                    : item.get(parameter.name, parameter.default_value(dimension), as_size);
    dimension.parameters.emplace(parameter.name, value);
  }
}

/// Appends what an entry stands for; returns how many dimensions that are.
std::uint32_t read_entry(Section& item, const Place& place, std::vector<Dimension>& dimensions) {
  const std::size_t faults = item.faults().count();
  const Kind kind = item.require("shape", names_of_kinds(), Kind(),
                                 [](const Value& v, const std::string& key) { return as_word(v, key, kinds()); });
  std::vector<std::uint32_t> sizes(kind.rings, 0);
  if (kind.rings > 1)
    sizes = item.require("size", "the sizes of its rings, such as 4x8", sizes,
                         [&](const Value& v, const std::string& key) { return as_sides(v, key, kind.rings); });
  else
    sizes[0] = item.require("size", "a whole number, 1 or more", 0U, as_size);
  Dimension dimension;
  dimension.shape = kind.shape;
  dimension.bandwidth =
      item.require("bandwidth", "that of one link, such as '400 GB/s'", Bandwidth::from_bytes_per_ns(1), as_bandwidth);
  dimension.latency_ns = item.require("latency", "that of one hop, such as '500 ns'", 0.0, as_nanoseconds);
  dimension.in_switch_operations = item.get("in-switch-operations", dimension.in_switch_operations,
                                            [](const Value& v, const std::string& key) { return as_count(v, key, 0); });
  dimension.links = item.get("links", dimension.links, as_size);
  dimension.oversubscription =
      item.get("oversubscription", dimension.oversubscription,
               [](const Value& v, const std::string& key) { return as_number(v, key, "1 to 1e6"); });
  read_parameters(item, dimension);
  item.refuse_unknown();
  for (const std::uint32_t size : sizes) {
    dimension.size = size;
    if (item.faults().count() == faults)
      item.faults().attempt([&] { topology::validate(dimension, dimensions.size(), kind.name, place); });
    dimensions.push_back(dimension);
  }
  return kind.rings;
}

}  // namespace

bool is_shape(std::string_view word) {
  return std::ranges::find(kinds(), word, &std::pair<std::string_view, Kind>::first) != kinds().end();
}

std::vector<std::uint32_t> read_dimensions(Section& network, std::vector<Dimension>& dimensions) {
  std::vector<std::uint32_t> entries;
  const Value* const list = network.need("dimensions", dimension_example);
  if (list == nullptr) return entries;
  network.faults().attempt([&] {
    const auto& items = as_list(*list, network.path("dimensions"), dimension_example);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string path = fmt::format("{}.{}", network.path("dimensions"), i);
      Section item(&items[i], path, items[i], network.faults());
      entries.push_back(read_entry(item, items[i].place(path), dimensions));
    }
  });
  return entries;
}

std::string to_text(const Dimension& dimension) {
  std::string text =
      fmt::format("{{shape: {}, size: {}, bandwidth: {}, latency: {}", topology::name(dimension.shape), dimension.size,
                  to_text(dimension.bandwidth), nanoseconds_to_text(dimension.latency_ns));
  if (dimension.in_switch_operations > 0)
    text += fmt::format(", in-switch-operations: {}", dimension.in_switch_operations);
  if (dimension.links != 1) text += fmt::format(", links: {}", dimension.links);
  if (dimension.oversubscription != 1) text += fmt::format(", oversubscription: {}", dimension.oversubscription);
  for (const topology::ShapeParameter& parameter : dimension.shape->parameters)
    text += fmt::format(", {}: {}", parameter.name, dimension.parameter(parameter.name));
  return text + "}";
}

}  // namespace orrery::config
