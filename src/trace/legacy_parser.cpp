#include <fmt/format.h>

#include "node_parser.hpp"

namespace orrery::trace {
namespace {

/// The fields of 0.0.1 after id, name, type and parent.
enum FieldV001 : int {
  tensor_size = 6,
  simulated_run_time = 7,
  num_ops = 12,
  comm_type = 13,
  involved_dim = 14,
  communicator_id = 15,
  comm_src = 16,
  comm_dst = 17,
  comm_size = 18,
  comm_tag = 19,
  comm_priority = 20,
};

constexpr int attribute_v003 = 11;

enum class Taken : std::uint8_t { yes, no, malformed };

/// id, name, type and parent are alike in the older layouts.
Taken parse_common(Input& input, std::uint32_t tag, RawNode& node, RawTrace& trace, NamePool& names) {
  bool good = false;
  std::string_view text;
  switch (field_number(tag)) {
    case 1:
      good = wire_type(tag) == WireType::varint && input.ReadVarint64(&node.id);
      break;
    case 2:
      good = wire_type(tag) == WireType::bytes && read_view(input, text);
      if (good) node.name = names.intern(text);
      break;
    case 3:
      good = wire_type(tag) == WireType::varint && input.ReadVarint32(&node.type);
      break;
    case 4:
      good = read_integers(input, tag, trace.data);
      break;
    default:
      return Taken::no;
  }
  return good ? Taken::yes : Taken::malformed;
}

void set_field_v001(int field, std::uint64_t value, RawNode& node) {
  const Number number = whole_number(static_cast<std::int64_t>(value));
  switch (field) {
    case tensor_size:
      return node.set(Attribute::tensor_size, number);
    case simulated_run_time:
      node.duration_micros = value;
      return;
    case num_ops:
      return node.set(Attribute::num_ops, number);
    case comm_type:
      return node.set(Attribute::comm_type, number);
    case comm_src:
      return node.set(Attribute::comm_src, number);
    case comm_dst:
      return node.set(Attribute::comm_dst, number);
    case comm_size:
      return node.set(Attribute::comm_size, number);
    case comm_tag:
      return node.set(Attribute::comm_tag, number);
    case comm_priority:
      return node.set(Attribute::comm_priority, number);
    default:
      return;
  }
}

/// One (scalar, legacy numbering) attribute of 0.0.2 and 0.0.3.
bool parse_attribute_v003(Input& input, RawNode& node, NamePool& names) {
  AttributeValue value;
  if (!read_message(input, [&](Input& attribute) { return read_legacy_attribute(attribute, value); })) return false;
  if (value.name == AttributeValue::Name::runtime) {
    if (value.number.form == Form::whole) node.duration_micros = value.number.magnitude;
    return true;
  }
  apply_attribute(value, node, names);
  return true;
}

}  // namespace

bool parse_node_v0_0_1(Input& input, RawNode& node, RawTrace& trace, NamePool& names) {
  AttributeValue dims;
  while (const std::uint32_t tag = next_tag(input)) {
    const Taken taken = parse_common(input, tag, node, trace, names);
    if (taken == Taken::malformed) return false;
    if (taken == Taken::yes) continue;
    const int field = field_number(tag);
    std::uint64_t value = 0;
    if (field == involved_dim) {
      std::vector<std::uint64_t> flags;
      if (!read_integers(input, tag, flags)) return false;
      for (const std::uint64_t flag : flags) dims.add_flag(flag != 0);
    } else if (wire_type(tag) == WireType::varint) {
      if (!input.ReadVarint64(&value)) return false;
      if (field == communicator_id)
        node.group = value == 0 ? no_name : names.intern(fmt::format("{}", value));
      else
        set_field_v001(field, value, node);
    } else if (!skip_field(input, tag)) {
      return false;
    }
  }
  if (node.name == no_name) node.name = names.intern({});
  node.dimensions = dimensions_of(dims.flags, dims.num_flags);
  return input.ExpectAtEnd();
}

bool parse_node_v0_0_3(Input& input, RawNode& node, RawTrace& trace, NamePool& names) {
  while (const std::uint32_t tag = next_tag(input)) {
    const Taken taken = parse_common(input, tag, node, trace, names);
    if (taken == Taken::malformed) return false;
    if (taken == Taken::yes) continue;
    const bool is_attribute = tag == make_tag(attribute_v003, WireType::bytes);
    if (!(is_attribute ? parse_attribute_v003(input, node, names) : skip_field(input, tag))) return false;
  }
  if (node.name == no_name) node.name = names.intern({});
  return input.ExpectAtEnd();
}

}  // namespace orrery::trace
