// Chakra execution traces as JSON, in two dialects: the graph that Chakra's feeder reads, {"workload_graph": [...]},
// and what Chakra's jsonizer prints, the messages of a .et file one after the other in protocol buffers' own JSON.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "chakra_attribute.hpp"
#include "group_definitions.hpp"
#include "json_elements.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

using simdjson::dom::element;

constexpr std::string_view graph_member = "workload_graph";

/// The node types by the names of the schema, in the order of NodeType.
constexpr std::array<std::string_view, 11> type_names = {
    "INVALID_NODE",   "METADATA_NODE",  "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",      "COMM_SEND_NODE",
    "COMM_RECV_NODE", "COMM_COLL_NODE", "STORAGE_NODE",  "BATCH_NODE",     "CHECKPOINT_NODE"};

/// Returns the name of a member as the schema spells it: "ctrlDeps" and "ctrl_deps" are "ctrl_deps".
std::string schema_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool is_upper = std::isupper(static_cast<unsigned char>(c)) != 0;
    if (is_upper && !result.empty() && result.back() != '_') result += '_';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

/// Protocol buffers write integers of 64 bits as texts.
Number number_of(const element& value) {
  std::uint64_t whole = 0;
  std::int64_t with_sign = 0;
  double real = 0;
  bool flag = false;
  std::string_view text;
  if (value.get(flag) == simdjson::SUCCESS) return whole_number(std::uint64_t{flag ? 1U : 0U});
  if (value.get(whole) == simdjson::SUCCESS) return whole_number(whole);
  if (value.get(with_sign) == simdjson::SUCCESS) return whole_number(with_sign);
  if (value.get(real) == simdjson::SUCCESS) return whole_number(real);
  if (value.get(text) == simdjson::SUCCESS) return whole_number(text);
  return {0, NumberForm::no_number};
}

/// Reads the members of one node.
class NodeReader {
 public:
  NodeReader(const TraceFile& file, ParsedTrace& trace, std::uint64_t position)
      : file_(file), trace_(trace), node_(trace.add_node(position)), position_(position) {}

  void read(const element& value) {
    simdjson::dom::object members;
    if (value.get(members) != simdjson::SUCCESS) fail("there is a value that is no object", "a node");
    for (const auto& [name, member] : members) read_member(schema_name(name), member);
    finish();
  }

 private:
  [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
    Place place = file_.place();
    place.byte_offset = position_;
    throw Error(ErrorCode::bad_input, place, found, expected);
  }

  std::uint64_t whole(std::string_view name, const element& value) const {
    const Number number = number_of(value);
    if (number.form != NumberForm::whole)
      fail(fmt::format("'{}' of a node is no whole number of 0 or more", cited(name)), "a whole number");
    return number.magnitude;
  }

  void read_member(std::string_view name, const element& value) {
    std::string_view text;
    if (name == "id") {
      node_.id = whole(name, value);
    } else if (name == "name") {
      if (value.get(text) != simdjson::SUCCESS) fail("the name of a node is no text", "a text");
      node_.name = trace_.names.intern(text);
      is_definition_ = is_group_definition(text);
    } else if (name == "type" || name == "node_type") {
      read_type(name, value);
    } else if (name == "ctrl_deps") {
      read_dependencies(name, value, trace_.ctrl);
    } else if (name == "data_deps") {
      read_dependencies(name, value, trace_.data);
    } else if (name == "duration_micros" || name == "runtime") {
      node_.duration = whole(name, value);
    } else if (name == "inputs" && value.at_key("values").get(text) == simdjson::SUCCESS) {
      definitions_ = text;
    } else if (name == "attr") {
      simdjson::dom::array attributes;
      if (value.get(attributes) != simdjson::SUCCESS) fail("'attr' of a node is no list", "a list of attributes");
      for (const element attribute : attributes) read_attribute(attribute);
    } else {
      read_value(name, value);
    }
  }

  void read_type(std::string_view name, const element& value) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS) {
      node_.type = static_cast<std::uint32_t>(std::min<std::uint64_t>(whole(name, value), 0xffffffffU));
      return;
    }
    const auto found = std::ranges::find(type_names, text);
    if (found == type_names.end())
      fail(fmt::format("the type of a node is '{}'", cited(text)), "a node type of Chakra, such as COMP_NODE");
    node_.type = static_cast<std::uint32_t>(found - type_names.begin());
  }

  void read_dependencies(std::string_view name, const element& value, std::vector<std::uint64_t>& to) {
    simdjson::dom::array list;
    if (value.is_null()) return;
    if (value.get(list) != simdjson::SUCCESS) fail(fmt::format("'{}' of a node is no list", name), "a list of ids");
    for (const element id : list) to.push_back(whole(name, id));
  }

  /// Reads an attribute of protocol buffers: {"name": "comm_size", "int64Val": "1024"}.
  void read_attribute(const element& attribute) {
    simdjson::dom::object members;
    std::string_view name;
    if (attribute.get(members) != simdjson::SUCCESS || members.at_key("name").get(name) != simdjson::SUCCESS)
      fail("an attribute of a node has no name", "an object with 'name' and a value");
    for (const auto& [key, value] : members) {
      const std::string kind = schema_name(key);
      if (kind.ends_with("_list"))
        read_value(name, value.at_key("values").error() == simdjson::SUCCESS ? value.at_key("values").value() : value);
      else if (kind.ends_with("_val"))
        read_value(name, value);
    }
  }

  /// Reads the value of an attribute; names without a meaning are left out.
  void read_value(std::string_view name, const element& value) {
    if (const auto found = std::ranges::find(attribute_names, name); found != attribute_names.end())
      return node_.set(static_cast<Attribute>(found - attribute_names.begin()), number_of(value));
    if (name == "pg_name") {
      std::string_view text;
      const Number number = number_of(value);
      if (value.get(text) == simdjson::SUCCESS)
        node_.group = trace_.names.intern(text);
      else if (number.form == NumberForm::whole)
        node_.group = trace_.names.intern(fmt::format("{}", number.magnitude));
    } else if (simdjson::dom::array list; value.get(list) == simdjson::SUCCESS) {
      if (name == "involved_dim") read_dimensions(list);
      if (name == "inputs" || name == "outputs") read_tensors(list, name == "outputs");
    }
  }

  void read_dimensions(const simdjson::dom::array& list) {
    ChakraAttribute flags;
    for (const element flag : list) flags.add_flag(number_of(flag).magnitude != 0);
    node_.dimensions = dimensions_of(flags.flags, flags.num_flags);
  }

  /// Reads a list of tensors: the name of a tensor and its bytes in turn.
  void read_tensors(const simdjson::dom::array& list, bool is_output) {
    bool is_name = true;
    for (const element entry : list) {
      std::string_view text;
      if (is_name && entry.get(text) == simdjson::SUCCESS) {
        trace_.tensors.push_back({.name = trace_.names.intern(text), .is_output = is_output});
      } else if (is_name) {
        trace_.tensors.push_back({.form = NumberForm::no_number, .is_output = is_output});
        return;
      } else {
        const Number size = number_of(entry);
        trace_.tensors.back().magnitude = size.magnitude;
        trace_.tensors.back().form = size.form;
      }
      is_name = !is_name;
    }
  }

  void finish() {
    if (node_.name == no_name) node_.name = trace_.names.intern({});
    if (is_definition_) read_group_list(definitions_, trace_);
    const auto lacks = [&](Attribute which) { return node_[which].form == NumberForm::absent; };
    const Number on_cpu = node_[Attribute::is_cpu_op];
    const bool is_collective = current_node_type(node_.type) == NodeType::comm_coll;
    if (!is_collective || (on_cpu.form != NumberForm::absent && on_cpu.magnitude != 0)) return;
    if (!lacks(Attribute::comm_type) || !lacks(Attribute::comm_size)) return;
    // The feeder's dialect has no attributes of collectives: what remains of one is the time that it took.
    node_.type = static_cast<std::uint32_t>(NodeType::comp);
    trace_.notices.add(
        "collective-without-size",
        "the file says neither the kind nor the size of collectives: they take their recorded durations, "
        "as computations do");
  }

  const TraceFile& file_;
  ParsedTrace& trace_;
  ParsedNode& node_;
  std::uint64_t position_;
  bool is_definition_ = false;
  std::string_view definitions_;
};

/// Returns the first member of a text that begins with an object: `"name"`; empty if it does not.
std::string_view first_member(std::string_view beginning) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto skip = [&](char c) {
    const auto at = beginning.find_first_not_of(blanks);
    if (at == std::string_view::npos || beginning[at] != c) return false;
    beginning.remove_prefix(at + 1);
    return true;
  };
  if (const auto at = beginning.find_first_not_of(blanks); at != std::string_view::npos && beginning[at] == '[')
    beginning.remove_prefix(at + 1);
  if (!skip('{') || !skip('"')) return {};
  return beginning.substr(0, std::min(beginning.find('"'), beginning.size()));
}

/// The jsonizer begins with the metadata, {"version": "0.0.4"}, or with a node.
bool recognises_chakra_json(std::string_view beginning) {
  const std::string_view first = first_member(beginning);
  if (first == graph_member) return true;
  const auto has = [&](std::string_view part) { return beginning.find(part) != std::string_view::npos; };
  // Node types are names or numbers.
  const bool has_node = has("_NODE\"") || (has("\"type\"") && has("\"attr\"") && (has("Deps\"") || has("_deps\"")));
  return has_node && (first == "version" || first == "id" || first == "name" || first == "type" || first == "attr");
}

/// Returns the attribute `precision` of metadata; empty if they have none.
std::string_view precision_of(const simdjson::dom::object& metadata) {
  std::string_view found;
  simdjson::dom::array attributes;
  if (metadata.at_key("attr").get(attributes) != simdjson::SUCCESS) return found;
  for (const element attribute : attributes) {
    std::string_view name;
    if (attribute.at_key("name").get(name) != simdjson::SUCCESS || name != "precision") continue;
    for (const std::string_view key : {"stringVal", "string_val"})
      if (std::string_view text; attribute.at_key(key).get(text) == simdjson::SUCCESS) found = text;
  }
  return found;
}

void read_chakra_json(TraceFile& file, TraceSink& sink) {
  ParsedTrace& trace = sink.begin();
  const auto read_node = [&](std::string_view, const element& value, std::uint64_t position) {
    simdjson::dom::object members;
    const bool is_metadata = value.get(members) == simdjson::SUCCESS && trace.nodes.empty() &&
                             members.at_key("version").error() == simdjson::SUCCESS;
    if (!is_metadata) return NodeReader(file, trace, position).read(value);
    trace.precision = precision_of(members);
  };
  if (first_member(file.beginning()) != graph_member) return read_json_objects(file, read_node);
  constexpr std::array arrays = {graph_member};
  read_json(file, arrays, read_node, [](auto, const auto&, auto) {});
}

}  // namespace

extern constinit const Reader chakra_json_reader{
    .name = "chakra-json",
    .help = "Chakra execution trace as JSON: the feeder's graph, or what chakra_jsonizer prints",
    .recognises = recognises_chakra_json,
    .read = read_chakra_json,
};

}  // namespace orrery::trace
