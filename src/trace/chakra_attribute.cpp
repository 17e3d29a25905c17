#include "chakra_attribute.hpp"

#include <fmt/format.h>
#include <google/protobuf/wire_format_lite.h>

#include <bit>

namespace orrery::trace {
namespace {

using google::protobuf::internal::WireFormatLite;

/// Field numbers of scalars in an Attribute of the current layout. A list of the same type has the next number.
enum Scalar : int {
  of_double = 3,
  of_float = 5,
  of_int32 = 7,
  of_int64 = 9,
  of_uint32 = 11,
  of_uint64 = 13,
  of_sint32 = 15,
  of_sint64 = 17,
  of_fixed32 = 19,
  of_fixed64 = 21,
  of_sfixed32 = 23,
  of_sfixed64 = 25,
  of_bool = 27,
  of_string = 29,
  of_bytes = 31,
};

constexpr WireType wire_type_of(int scalar) {
  switch (scalar) {
    case of_double:
    case of_fixed64:
    case of_sfixed64:
      return WireType::fixed64;
    case of_float:
    case of_fixed32:
    case of_sfixed32:
      return WireType::fixed32;
    case of_string:
    case of_bytes:
      return WireType::bytes;
    default:
      return WireType::varint;
  }
}

/// Decodes 64 bits from the wire, or 32 of the narrow fixed types.
Number decode(int scalar, std::uint64_t bits) {
  switch (scalar) {
    case of_double:
      return whole_number(std::bit_cast<double>(bits));
    case of_float:
      return whole_number(static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
    case of_int32:
    case of_int64:
    case of_sfixed64:
      return whole_number(static_cast<std::int64_t>(bits));
    case of_sfixed32:
      return whole_number(std::int64_t{static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))});
    case of_sint32:
    case of_sint64:
      return whole_number(WireFormatLite::ZigZagDecode64(bits));
    case of_bool:
      return whole_number(std::uint64_t{bits != 0});
    default:
      return whole_number(bits);
  }
}

bool read_bits(Input& input, WireType type, std::uint64_t& bits) {
  if (type == WireType::varint) return input.ReadVarint64(&bits);
  if (type == WireType::fixed64) return input.ReadLittleEndian64(&bits);
  if (type != WireType::fixed32) return false;
  std::uint32_t narrow = 0;
  if (!input.ReadLittleEndian32(&narrow)) return false;
  bits = narrow;
  return true;
}

bool read_packed_flags(std::string_view packed, int scalar, ChakraAttribute& value) {
  Input input = input_over(packed);
  while (!input.ExpectAtEnd()) {
    std::uint64_t bits = 0;
    if (!read_bits(input, wire_type_of(scalar), bits)) return false;
    value.add_flag(decode(scalar, bits).magnitude != 0);
  }
  return true;
}

/// Reads a list message (`values` 1) of numbers or bools as flags.
bool read_flags(std::string_view list, int scalar, ChakraAttribute& value) {
  if (wire_type_of(scalar) == WireType::bytes) return true;
  Input input = input_over(list);
  while (const std::uint32_t tag = next_tag(input)) {
    std::string_view packed;
    std::uint64_t bits = 0;
    if (tag == make_tag(1, WireType::bytes)) {
      if (!read_view(input, packed) || !read_packed_flags(packed, scalar, value)) return false;
    } else if (tag == make_tag(1, wire_type_of(scalar))) {
      if (!read_bits(input, wire_type_of(scalar), bits)) return false;
      value.add_flag(decode(scalar, bits).magnitude != 0);
    } else if (!skip_field(input, tag)) {
      return false;
    }
  }
  return input.ExpectAtEnd();
}

bool read_scalar(Input& input, int scalar, WireType type, ChakraAttribute& value) {
  if (type != wire_type_of(scalar)) return false;
  if (type == WireType::bytes) {
    std::string_view text;
    if (!read_view(input, text)) return false;
    value.text = text;
    value.number.form = NumberForm::no_number;
    return true;
  }
  std::uint64_t bits = 0;
  if (!read_bits(input, type, bits)) return false;
  value.number = decode(scalar, bits);
  value.add_flag(value.number.magnitude != 0);
  return true;
}

bool read_list(Input& input, int scalar, WireType type, ChakraAttribute& value) {
  std::string_view list;
  if (type != WireType::bytes || !read_view(input, list)) return false;
  value.number.form = NumberForm::no_number;
  if (scalar == of_string) value.texts = list;
  return read_flags(list, scalar, value);
}

/// Reads a length-delimited value of 0.0.2 or 0.0.3: a text, or bools that are packed or stand in a list message.
bool read_bytes_of_v003(Input& input, ChakraAttribute& value) {
  std::string_view bytes;
  if (!read_view(input, bytes)) return false;
  value.text = bytes;
  value.number.form = NumberForm::no_number;
  if (value.name != ChakraAttribute::Name::involved_dim) return true;
  const bool packed = bytes.find_first_not_of(std::string_view("\0\1", 2)) == std::string_view::npos;
  return packed ? read_packed_flags(bytes, of_bool, value) : read_flags(bytes, of_bool, value);
}

/// Finds out which attribute a name is.
void name_attribute(std::string_view name, ChakraAttribute& value) {
  using Name = ChakraAttribute::Name;
  value.name = Name::ignored;
  if (name.size() < 6 || name.size() > 15) return;  // the shortest and the longest that matter
  for (std::size_t at = 0; at < num_attributes; ++at) {
    if (name != attribute_names[at]) continue;
    value.name = Name::numeric;
    value.numeric = static_cast<Attribute>(at);
    return;
  }
  if (name == "pg_name") value.name = Name::pg_name;
  if (name == "involved_dim") value.name = Name::involved_dim;
  if (name == "inputs") value.name = Name::inputs;
  if (name == "outputs") value.name = Name::outputs;
  if (name == "runtime") value.name = Name::runtime;
}

}  // namespace

void ChakraAttribute::add_flag(bool flag) {
  if (flag && num_flags < 64) flags |= std::uint64_t{1} << num_flags;
  ++num_flags;
}

bool read_attribute(Input& input, ChakraAttribute& value) {
  while (const std::uint32_t tag = next_tag(input)) {
    const int field = field_number(tag);
    bool good = true;
    if (field == 1) {
      std::string_view name;
      good = wire_type(tag) == WireType::bytes && read_view(input, name);
      if (good) {
        name_attribute(name, value);
        if (value.name == ChakraAttribute::Name::ignored) return true;
      }
    } else if (field >= of_double && field <= of_bytes + 1) {
      good = field % 2 == 1 ? read_scalar(input, field, wire_type(tag), value)
                            : read_list(input, field - 1, wire_type(tag), value);
    } else {
      good = skip_field(input, tag);
    }
    if (!good) return false;
  }
  return input.ExpectAtEnd();
}

bool read_attribute_of_v003(Input& input, ChakraAttribute& value) {
  while (const std::uint32_t tag = next_tag(input)) {
    const int field = field_number(tag);
    std::string_view name;
    bool good = true;
    if (field == 1) {
      good = wire_type(tag) == WireType::bytes && read_view(input, name);
      if (good) name_attribute(name, value);
    } else if (field <= 3) {
      good = skip_field(input, tag);
    } else if (wire_type(tag) == WireType::bytes) {
      good = read_bytes_of_v003(input, value);
    } else {
      const int scalar = wire_type(tag) == WireType::varint    ? of_int64
                         : wire_type(tag) == WireType::fixed64 ? of_double
                                                               : of_float;
      good = read_scalar(input, scalar, wire_type(tag), value);
    }
    if (!good) return false;
  }
  return input.ExpectAtEnd();
}

std::uint64_t dimensions_of(std::uint64_t flags, unsigned num_flags) {
  if (num_flags == 0) return all_dimensions;
  const std::uint64_t listed = num_flags >= 64 ? all_dimensions : (std::uint64_t{1} << num_flags) - 1;
  return flags == listed ? all_dimensions : flags;
}

void store_attribute(const ChakraAttribute& value, ParsedNode& node, NamePool& names) {
  switch (value.name) {
    case ChakraAttribute::Name::ignored:
      return;
    case ChakraAttribute::Name::numeric:
      return node.set(value.numeric, value.number);
    case ChakraAttribute::Name::pg_name:
      if (value.text) {
        node.group = names.intern(*value.text);
      } else if (value.number.form == NumberForm::whole || value.number.form == NumberForm::negative) {
        const char* sign = value.number.form == NumberForm::negative ? "-" : "";
        node.group = names.intern(fmt::format("{}{}", sign, value.number.magnitude));
      }
      return;
    case ChakraAttribute::Name::involved_dim:
      node.dimensions = dimensions_of(value.flags, value.num_flags);
      return;
    case ChakraAttribute::Name::inputs:
    case ChakraAttribute::Name::outputs:
    case ChakraAttribute::Name::runtime:
      return;
  }
}

}  // namespace orrery::trace
