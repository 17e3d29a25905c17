// Chakra execution traces in the current schema: versions 0.0.4 and 1.0.0, with or without metadata.
#include "chakra_attribute.hpp"
#include "chakra_file.hpp"
#include "chakra_layout.hpp"
#include "group_definitions.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

/// Field numbers of a Node.
struct Field {
  enum Number : int {
    id = 1,
    name = 2,
    type = 3,
    ctrl_deps = 4,
    data_deps = 5,
    start_time_micros = 6,
    duration_micros = 7,
    inputs = 8,
    outputs = 9,
    attr = 10,
  };
};

/// Reads a list of tensors: texts, the name of a tensor and its size in turn.
bool read_tensors(const ChakraAttribute& value, ParsedTrace& trace) {
  const bool is_output = value.name == ChakraAttribute::Name::outputs;
  if (!value.texts) {
    if (value.number.form != NumberForm::absent)
      trace.tensors.push_back({.form = NumberForm::no_number, .is_output = is_output});
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
      trace.tensors.push_back({.name = trace.batch.add(text), .is_output = is_output});
    } else {
      const Number size = whole_number(text);
      trace.tensors.back().magnitude = size.magnitude;
      trace.tensors.back().form = size.form;
    }
    is_name = !is_name;
  }
  return input.ExpectAtEnd();
}

bool parse_attribute(Input& input, ParsedNode& node, ParsedTrace& trace) {
  ChakraAttribute value;
  if (!read_submessage(input, [&](Input& attribute) { return read_attribute(attribute, value); })) return false;
  if (value.name == ChakraAttribute::Name::inputs || value.name == ChakraAttribute::Name::outputs)
    return read_tensors(value, trace);
  if (value.name != ChakraAttribute::Name::ignored) store_attribute(value, node, trace.names);
  return true;
}

bool parse_current_node(Input& input, ParsedNode& node, ParsedTrace& trace) {
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
        good = input.ReadVarint64(&node.duration);
        break;
      case make_tag(Field::inputs, WireType::bytes):
        good = read_view(input, inputs_message);
        break;
      case make_tag(Field::attr, WireType::bytes):
        good = parse_attribute(input, node, trace);
        break;
      default:  // an unknown field is skipped; a field of the schema with another wire type is a fault
        good = field_number(tag) > Field::attr || tag == make_tag(Field::start_time_micros, WireType::varint) ||
               tag == make_tag(Field::outputs, WireType::bytes);
        good = good && skip_field(input, tag);
    }
    if (!good) return false;
  }
  node.name = trace.batch.add(name_text);
  if (is_group_definition(name_text)) read_group_definitions(inputs_message, trace);
  return input.ExpectAtEnd();
}

bool recognises_chakra(std::string_view beginning) { return chakra_layout(beginning) == ChakraLayout::current; }

void read_current_chakra(TraceFile& file, TraceSink& sink) {
  read_chakra_file(file, sink, current_numbering, parse_current_node);
}

}  // namespace

extern constinit const Reader chakra_reader{
    .name = "chakra",
    .help = "Chakra execution trace, versions 0.0.4 and 1.0.0: protocol buffers, one file per NPU",
    .recognises = recognises_chakra,
    .read = read_current_chakra,
};

}  // namespace orrery::trace
