#include "orrery/synthesis/model_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/distribution.hpp"
#include "orrery/base/error.hpp"
#include "orrery/base/mix.hpp"
#include "sizes.hpp"

namespace orrery::synthesis {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view format_name = "orrery-synthesis";
constexpr int format_version = 1;

// ---- writing ----

ordered_json json_of(const GroupShape& shape) {
  auto extents = ordered_json::array();
  for (const Extent& extent : shape.extents) {
    if (extent.kind == Extent::Kind::own) extents.push_back("own");
    if (extent.kind == Extent::Kind::all) extents.push_back("all");
    if (extent.kind == Extent::Kind::listed) extents.push_back(extent.positions);
  }
  return {{"extents", std::move(extents)}, {"twin", shape.twin}};
}

ordered_json json_of(const Family& family) {
  ordered_json json{{"kind", static_cast<int>(family.kind)}};
  if (!family.group.extents.empty()) {
    json["collective"] = static_cast<int>(family.collective);
    json["dimensions"] = family.dimensions;
    json["group"] = json_of(family.group);
  }
  if (!family.peer.empty()) json["peer"] = family.peer;
  if (family.priority != 0) json["priority"] = family.priority;
  if (family.stream != 0) json["stream"] = family.stream;
  return json;
}

ordered_json json_of(const Sketch& sketch, std::size_t number, const Obfuscation& obfuscation) {
  auto points = ordered_json::array();
  const auto spread = spread_of(sketch, obfuscation);
  for (std::size_t p = 0; p < sketch.points.size(); ++p) {
    const SketchPoint& point = sketch.points[p];
    double factor = 1;
    if (obfuscation.delta > 0) {
      const std::uint64_t word = mix(mix(mix(obfuscation.seed, 0x736b65746368), number), p);
      factor = std::exp(obfuscation.delta * normal_quantile((static_cast<double>(word >> 11U) + 0.5) * 0x1p-53));
    }
    const auto size = [&](double value, double of_field) {
      return obfuscation.changes_sizes() ? to_three_digits(value * factor * of_field) : value;
    };
    points.push_back(
        {point.weight, size(point.flops, spread[0]), size(point.bytes, spread[1]), size(point.ps, spread[2])});
  }
  return points;
}

/// Writes the dependencies of a position: the list of most occurrences, and then those that differ.
ordered_json json_of_edges(const std::vector<std::uint32_t>& table) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto list : table) ++counts[list];
  std::uint32_t usual = 0;
  std::size_t most = 0;
  for (const auto& [list, count] : counts)
    if (count > most) {
      usual = list;
      most = count;
    }
  auto json = ordered_json::array({usual});
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i] != usual) json.push_back({i, table[i]});
  return json;
}

ordered_json json_of(const Token& token) {
  auto body = ordered_json::array();
  for (std::size_t b = 0; b < token.body.size(); ++b) {
    const Slot& slot = token.body[b];
    body.push_back({{"family", slot.family},
                    {"sketch", slot.sketch},
                    {"rank", slot.rank},
                    {"channel", slot.channel},
                    {"exponents", slot.exponents},
                    {"edges", json_of_edges(token.edges[b])}});
    if (!token.held.empty()) body.back()["held"] = json_of_edges(token.held[b]);
  }
  return {{"count", token.count},
          {"layers", token.is_layers},
          {"per_micro_batch", token.per_micro_batch},
          {"body", std::move(body)}};
}

ordered_json json_of(const Edge& edge) {
  return {edge.token,       edge.offset, static_cast<int>(edge.micro_batches),
          edge.micro_batch, edge.part,   static_cast<int>(edge.layers),
          edge.layer};
}

/// Writes a tensor: the edge to the node that lists it first, what both nodes do with it (a bit each), and its bytes.
ordered_json json_of(const HeldTensor& tensor, const Obfuscation& obfuscation) {
  const TensorUse& use = tensor.use;
  const int bits =
      (use.first_needs ? 1 : 0) + (use.first_makes ? 2 : 0) + (use.last_needs ? 4 : 0) + (use.last_makes ? 8 : 0);
  return {json_of(tensor.maker), bits, tensor_bytes(tensor, 1, obfuscation)};
}

ordered_json json_of(const Role& role, const Obfuscation& obfuscation) {
  auto edges = ordered_json::array(), held = ordered_json::array();
  for (const Edges& list : role.edges) {
    auto written = ordered_json::array();
    for (const Edge& edge : list) written.push_back(json_of(edge));
    edges.push_back(std::move(written));
  }
  for (const HeldTensors& list : role.held) {
    auto written = ordered_json::array();
    for (const HeldTensor& tensor : list) written.push_back(json_of(tensor, obfuscation));
    held.push_back(std::move(written));
  }
  auto tokens = ordered_json::array();
  for (const Token& token : role.tokens) tokens.push_back(json_of(token));
  return {{"npus", role.num_npus},     {"layers", role.layers},     {"tokens", std::move(tokens)},
          {"sequence", role.sequence}, {"edges", std::move(edges)}, {"held", std::move(held)}};
}

ordered_json json_of(const Axis& axis) {
  return {{"size", axis.size},
          {"roles", axis.has_roles},
          {"pipeline", axis.is_pipeline},
          {"collectives", axis.collectives},
          {"messages", axis.messages}};
}

// ---- reading ----

/// Holds what is read to its ranges.
void need(bool holds, std::string_view what) {
  if (!holds) throw Error(ErrorCode::bad_input, {}, fmt::format("{} out of range", what));
}

/// Returns a whole number that T holds.
template <class T>
T integer(const nlohmann::json& json, std::string_view what) {
  need(json.is_number_integer(), what);
  const bool fits = json.is_number_unsigned() ? std::in_range<T>(json.get<std::uint64_t>())
                                              : std::in_range<T>(json.get<std::int64_t>());
  need(fits, what);
  return json.get<T>();
}

template <class T>
std::vector<T> integers(const nlohmann::json& json, std::string_view what) {
  need(json.is_array(), what);
  std::vector<T> values;
  for (const auto& value : json) values.push_back(integer<T>(value, what));
  return values;
}

template <class T>
T whole(const nlohmann::json& json, std::uint64_t limit, std::string_view what) {
  const auto value = integer<std::uint64_t>(json, what);
  need(value < limit, what);
  return static_cast<T>(value);
}

GroupShape group_of(const nlohmann::json& json, std::size_t num_axes) {
  GroupShape shape;
  for (const auto& extent : json.at("extents")) {
    if (extent.is_array())
      shape.extents.push_back({Extent::Kind::listed, integers<std::int32_t>(extent, "extents")});
    else
      shape.extents.push_back({extent.get<std::string>() == "all" ? Extent::Kind::all : Extent::Kind::own});
  }
  need(shape.extents.size() == num_axes, "extents");
  shape.twin = integer<std::uint32_t>(json.at("twin"), "twin");
  return shape;
}

Family family_of(const nlohmann::json& json, std::size_t num_axes) {
  Family family;
  family.kind = whole<trace::NodeKind>(json.at("kind"), 9, "kind");
  if (json.contains("group")) {
    family.collective = whole<trace::CollectiveKind>(json.at("collective"), 10, "collective");
    family.dimensions = integer<std::uint64_t>(json.at("dimensions"), "dimensions");
    family.group = group_of(json.at("group"), num_axes);
  }
  if (json.contains("peer")) family.peer = integers<Offsets::value_type>(json.at("peer"), "peer");
  const bool is_message = family.kind == trace::NodeKind::send || family.kind == trace::NodeKind::receive;
  need(family.peer.size() == (is_message ? num_axes : 0), "peer");
  need(family.kind != trace::NodeKind::collective || !family.group.extents.empty(), "group");
  if (json.contains("priority")) family.priority = integer<std::int32_t>(json.at("priority"), "priority");
  if (json.contains("stream")) family.stream = integer<std::uint16_t>(json.at("stream"), "stream");
  return family;
}

Sketch sketch_of_json(const nlohmann::json& json) {
  Sketch sketch;
  double weight = 0;
  for (const auto& point : json) {
    sketch.points.push_back({point.at(0), point.at(1), point.at(2), point.at(3)});
    const SketchPoint& read = sketch.points.back();
    need(read.weight > 0 && std::min({read.flops, read.bytes, read.ps}) >= 0, "sketch");
    need(std::max({read.flops, read.bytes, read.ps}) < 9e18, "sketch");
    weight += read.weight;
  }
  need(!sketch.points.empty() && std::abs(weight - 1) < 1e-6, "weights of a sketch");
  return sketch;
}

/// Reads which list each occurrence of a position has.
std::vector<std::uint32_t> lists_of(const nlohmann::json& json, std::size_t size, std::size_t num_lists) {
  std::vector<std::uint32_t> table(size, whole<std::uint32_t>(json.at(0), num_lists, "edges"));
  for (std::size_t i = 1; i < json.size(); ++i)
    table[whole<std::size_t>(json[i].at(0), table.size(), "edges")] =
        whole<std::uint32_t>(json[i].at(1), num_lists, "edges");
  return table;
}

Token token_of(const nlohmann::json& json, const Model& model, std::uint32_t occurrences, const Role& role) {
  Token token;
  token.count = whole<std::uint32_t>(json.at("count"), 1U << 24U, "count");
  need(token.count > 0, "count");
  token.is_layers = json.at("layers");
  token.occurrences = occurrences;
  token.per_micro_batch = json.at("per_micro_batch");
  for (const auto& written : json.at("body")) {
    Slot& slot = token.body.emplace_back();
    slot.family = whole<std::uint32_t>(written.at("family"), model.families.size(), "family");
    slot.sketch = whole<std::uint32_t>(written.at("sketch"), model.sketches.size(), "sketch");
    if (written.contains("rank")) slot.rank = integer<std::uint32_t>(written.at("rank"), "rank");
    slot.channel = integer<std::uint32_t>(written.at("channel"), "channel");
    slot.exponents = written.at("exponents").get<std::vector<double>>();
    need(slot.exponents.size() == model.axes.size(), "exponents");
    const std::size_t size = std::size_t{occurrences} * token.count;
    token.edges.push_back(lists_of(written.at("edges"), size, role.edges.size()));
    if (!role.held.empty()) token.held.push_back(lists_of(written.at("held"), size, role.held.size()));
  }
  need(!token.body.empty(), "body");
  return token;
}

Edge edge_of(const nlohmann::json& json) {
  return {.token = integer<std::uint32_t>(json.at(0), "edge"),
          .offset = integer<std::uint32_t>(json.at(1), "edge"),
          .micro_batches = whole<Edge::Over>(json.at(2), 5, "edge"),
          .micro_batch = integer<std::int32_t>(json.at(3), "edge"),
          .part = integer<std::uint32_t>(json.at(4), "edge"),
          .layers = whole<Edge::Over>(json.at(5), 5, "edge"),
          .layer = integer<std::int32_t>(json.at(6), "edge")};
}

HeldTensor tensor_of(const nlohmann::json& json) {
  const auto bits = whole<unsigned>(json.at(1), 16, "held");
  HeldTensor tensor{edge_of(json.at(0)),
                    {(bits & 1U) != 0, (bits & 2U) != 0, (bits & 4U) != 0, (bits & 8U) != 0},
                    integer<std::uint64_t>(json.at(2), "held")};
  need(tensor.bytes > 0 && tensor.bytes < 1ULL << 62U && bits != 0, "held");
  return tensor;
}

Role role_of_json(const nlohmann::json& json, const Model& model) {
  Role role;
  role.num_npus = integer<std::uint32_t>(json.at("npus"), "npus");
  role.layers = integer<std::uint32_t>(json.at("layers"), "layers");
  role.sequence = integers<std::uint32_t>(json.at("sequence"), "sequence");
  const auto& tokens = json.at("tokens");
  std::vector<std::uint32_t> occurrences(tokens.size());
  for (const auto token : role.sequence) {
    need(token < tokens.size(), "sequence");
    ++occurrences[token];
  }
  for (const auto& list : json.at("edges")) {
    Edges& edges = role.edges.emplace_back();
    for (const auto& edge : list) edges.push_back(edge_of(edge));
  }
  if (json.contains("held"))
    for (const auto& list : json.at("held")) {
      HeldTensors& tensors = role.held.emplace_back();
      for (const auto& tensor : list) tensors.push_back(tensor_of(tensor));
    }
  for (std::size_t t = 0; t < tokens.size(); ++t)
    role.tokens.push_back(token_of(tokens[t], model, occurrences[t], role));
  const auto check = [&](const Edge& edge) {
    need(edge.token < role.tokens.size() && edge.offset < role.tokens[edge.token].body.size(), "edge");
  };
  for (const Edges& list : role.edges) std::ranges::for_each(list, check);
  for (const HeldTensors& list : role.held)
    for (const HeldTensor& tensor : list) check(tensor.maker);
  return role;
}

/// What a part of the file is not, and where it is.
struct Misfit {
  std::string path, text;
};

/// Returns what the JSON library has found wrong: "[json.exception.NAME.NUMBER] (/path) in its own words". The path is
/// there because of JSON_DIAGNOSTICS (CMakeLists.txt).
Misfit misfit_of(const nlohmann::json::exception& error) {
  constexpr int no_such_index = 401, no_such_key = 403;
  const std::string_view what = error.what();
  Misfit misfit{"", "a value of another type"};
  const std::size_t begin = what.find("] (/"), end = what.find(") ");
  if (begin != std::string_view::npos && end != std::string_view::npos && begin < end)
    misfit.path = what.substr(begin + 3, end - begin - 3);
  if (error.id == no_such_index) misfit.text = "a list that is too short";
  if (error.id == no_such_key) {
    const std::size_t key = what.find("key '"), after = what.find("' not found");
    if (key != std::string_view::npos && after != std::string_view::npos)
      misfit.text = fmt::format("no '{}' in it", what.substr(key + 5, after - key - 5));
  }
  return misfit;
}

Model model_of(const nlohmann::json& json) {
  Model model;
  model.num_npus = 1;
  std::uint64_t table = 1;
  for (const auto& axis : json.at("axes")) {
    const auto size = whole<std::uint32_t>(axis.at("size"), 1U << 30U, "size of an axis");
    need(size > 0 && std::uint64_t{model.num_npus} * size <= 1U << 30U, "size of an axis");
    model.axes.push_back(
        {size, model.num_npus, axis.at("roles"), axis.at("collectives"), axis.at("messages"), axis.at("pipeline")});
    model.num_npus *= size;
    if (model.axes.back().has_roles) table *= size;
  }
  model.micro_batches = whole<std::uint32_t>(json.at("micro_batches"), 1U << 24U, "micro_batches");
  model.layers = whole<std::uint32_t>(json.at("layers"), 1U << 24U, "layers");
  model.num_channels = whole<std::uint32_t>(json.at("channels"), 1U << 31U, "channels");
  model.precision = json.value("precision", "");
  for (const auto& family : json.at("families")) model.families.push_back(family_of(family, model.axes.size()));
  for (const auto& sketch : json.at("sketches")) model.sketches.push_back(sketch_of_json(sketch));
  for (const auto& role : json.at("roles")) model.roles.push_back(role_of_json(role, model));
  model.role_table = integers<std::uint32_t>(json.at("role_table"), "role_table");
  need(model.role_table.size() == table, "role_table");
  for (const auto role : model.role_table) need(role < model.roles.size(), "role_table");
  return model;
}

}  // namespace

std::string to_json(const Model& model, const Obfuscation& obfuscation) {
  ordered_json json{{"format", format_name}, {"version", format_version}};
  json["axes"] = ordered_json::array();
  for (const Axis& axis : model.axes) json["axes"].push_back(json_of(axis));
  json["micro_batches"] = model.micro_batches;
  json["layers"] = model.layers;
  json["channels"] = model.num_channels;
  if (!model.precision.empty()) json["precision"] = cited(model.precision);
  json["families"] = ordered_json::array();
  for (const Family& family : model.families) json["families"].push_back(json_of(family));
  json["sketches"] = ordered_json::array();
  for (std::size_t s = 0; s < model.sketches.size(); ++s)
    json["sketches"].push_back(json_of(model.sketches[s], s, obfuscation));
  json["roles"] = ordered_json::array();
  for (const Role& role : model.roles) json["roles"].push_back(json_of(role, obfuscation));
  json["role_table"] = model.role_table;
  return json.dump() + '\n';
}

Model parse_model(std::string_view text, const std::string& file) {
  const auto expected = fmt::format("a model that orrery synthesize --model-out wrote (version {})", format_version);
  const auto refuse = [&](const std::string& found) {
    return Error(ErrorCode::bad_input, {.file = file}, found, expected);
  };
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("format") != format_name || json.at("version") != format_version)
      throw refuse("another format or version");
    return model_of(json);
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t byte = error.byte - 1;  // the library counts from 1
    const auto line = static_cast<std::uint64_t>(std::ranges::count(text.substr(0, byte), '\n')) + 1;
    throw Error(ErrorCode::bad_input, {.file = file, .line = line, .byte_offset = byte},
                byte >= text.size() ? "the file ends within a value" : "no JSON from here on", expected);
  } catch (const nlohmann::json::exception& error) {
    const Misfit misfit = misfit_of(error);
    throw Error(ErrorCode::bad_input, {.file = file, .key = misfit.path}, misfit.text, expected);
  } catch (const Error& error) {
    if (!error.place().file.empty()) throw;
    throw refuse(error.text());
  }
}

}  // namespace orrery::synthesis
