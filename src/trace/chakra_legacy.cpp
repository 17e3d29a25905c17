#include "chakra_legacy.hpp"

namespace orrery::trace {

LegacyField parse_legacy_field(Input& input, std::uint32_t tag, ParsedNode& node, ParsedTrace& trace) {
  bool good = false;
  std::string_view text;
  switch (field_number(tag)) {
    case 1:
      good = wire_type(tag) == WireType::varint && input.ReadVarint64(&node.id);
      break;
    case 2:
      good = wire_type(tag) == WireType::bytes && read_view(input, text);
      if (good) node.name = trace.batch.add(text);
      break;
    case 3:
      good = wire_type(tag) == WireType::varint && input.ReadVarint32(&node.type);
      break;
    case 4:
      good = read_integers(input, tag, trace.data);
      break;
    default:
      return LegacyField::other;
  }
  return good ? LegacyField::read : LegacyField::malformed;
}

std::optional<NodeType> node_type_without_metadata(std::uint32_t number) {
  constexpr std::uint32_t last = 6;  // COMM_COLL
  if (number > last) return std::nullopt;
  return current_node_type(number == 0 ? 0 : number + 1);
}

}  // namespace orrery::trace
