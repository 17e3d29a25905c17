#include "node_parser.hpp"

#include <fmt/format.h>

#include "group_definitions.hpp"

namespace orrery::trace {
namespace {

enum Field : int {
  id = 1,
  name = 2,
  type = 3,
  ctrl_deps = 4,
  data_deps = 5,
  start_time_micros = 6,
  duration_micros = 7,
  inputs = 8,
  attr = 10,
};

/// Takes over inputs or outputs: texts in turn a name and a size.
bool read_tensors(const AttributeValue& value, RawTrace& trace, NamePool& names) {
  const bool is_output = value.name == AttributeValue::Name::outputs;
  if (!value.texts) {
    if (value.number.form != Form::absent) trace.tensors.push_back({.form = Form::no_number, .is_output = is_output});
    return true;
  }
  Input input = input_over(*value.texts);
  bool is_name = true;
  while (const std::uint32_t tag = next_tag(input)) {
    std::string_view text;
    if (field_number(tag) != 1) {
      if (!skip_field(input, tag)) return false;
      continue;
    }
    if (wire_type(tag) != WireType::bytes || !read_view(input, text)) return false;
    if (is_name) {
      trace.tensors.push_back({.name = names.intern(text), .is_output = is_output});
    } else {
      const Number size = whole_number(text);
      trace.tensors.back().magnitude = size.magnitude;
      trace.tensors.back().form = size.form;
    }
    is_name = !is_name;
  }
  return input.ExpectAtEnd();
}

bool parse_attribute(Input& input, RawNode& node, RawTrace& trace, NamePool& names) {
  AttributeValue value;
  if (!read_message(input, [&](Input& attribute) { return read_attribute(attribute, value); })) return false;
  if (value.name == AttributeValue::Name::inputs || value.name == AttributeValue::Name::outputs)
    return read_tensors(value, trace, names);
  if (value.name != AttributeValue::Name::ignored) apply_attribute(value, node, names);
  return true;
}

}  // namespace

std::uint64_t dimensions_of(std::uint64_t flags, unsigned num_flags) {
  if (num_flags == 0) return all_dimensions;
  const std::uint64_t listed = num_flags >= 64 ? all_dimensions : (std::uint64_t{1} << num_flags) - 1;
  return flags == listed ? all_dimensions : flags;
}

void apply_attribute(const AttributeValue& value, RawNode& node, NamePool& names) {
  switch (value.name) {
    case AttributeValue::Name::ignored:
      return;
    case AttributeValue::Name::numeric:
      return node.set(value.numeric, value.number);
    case AttributeValue::Name::pg_name:
      if (value.text) {
        node.group = names.intern(*value.text);
      } else if (value.number.form == Form::whole || value.number.form == Form::negative) {
        const char* sign = value.number.form == Form::negative ? "-" : "";
        node.group = names.intern(fmt::format("{}{}", sign, value.number.magnitude));
      }
      return;
    case AttributeValue::Name::involved_dim:
      node.dimensions = dimensions_of(value.flags, value.num_flags);
      return;
    case AttributeValue::Name::inputs:
    case AttributeValue::Name::outputs:
      // Of today's layout only, which takes them over itself.
      return;
    case AttributeValue::Name::runtime:
      // Today's layout has a field for it; an attribute of this name is for display there.
      return;
  }
}

bool parse_node(Input& input, RawNode& node, RawTrace& trace, NamePool& names) {
  std::string_view name_text;
  std::string_view inputs_message;
  while (const std::uint32_t tag = next_tag(input)) {
    bool good = true;
    switch (tag) {
      case make_tag(Field::id, WireType::varint):
        good = input.ReadVarint64(&node.id);
        break;
      case make_tag(Field::name, WireType::bytes):
        good = read_view(input, name_text);
        break;
      case make_tag(Field::type, WireType::varint):
        good = input.ReadVarint32(&node.type);
        break;
      case make_tag(Field::ctrl_deps, WireType::bytes):
      case make_tag(Field::ctrl_deps, WireType::varint):
        good = read_integers(input, tag, trace.ctrl);
        break;
      case make_tag(Field::data_deps, WireType::bytes):
      case make_tag(Field::data_deps, WireType::varint):
        good = read_integers(input, tag, trace.data);
        break;
      case make_tag(Field::duration_micros, WireType::varint):
        good = input.ReadVarint64(&node.duration_micros);
        break;
      case make_tag(Field::inputs, WireType::bytes):
        good = read_view(input, inputs_message);
        break;
      case make_tag(Field::attr, WireType::bytes):
        good = parse_attribute(input, node, trace, names);
        break;
      default:  // a field of the schema with another wire type is no Node; a field that is not of the schema is skipped
        good = field_number(tag) > Field::attr || tag == make_tag(Field::start_time_micros, WireType::varint) ||
               tag == make_tag(9, WireType::bytes);
        good = good && skip_field(input, tag);
    }
    if (!good) return false;
  }
  node.name = names.intern(name_text);
  if (is_group_definition(name_text)) read_group_definitions(inputs_message, trace);
  return input.ExpectAtEnd();
}

}  // namespace orrery::trace
