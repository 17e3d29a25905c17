// Chakra execution traces of versions 0.0.2 and 0.0.3: attributes whose values stand at field numbers that moved.
#include <array>

#include "chakra_attribute.hpp"
#include "chakra_file.hpp"
#include "chakra_layout.hpp"
#include "chakra_legacy.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

constexpr int attribute_field = 11;

bool parse_attribute_v0_0_3(Input& input, ParsedNode& node, NamePool& names) {
  ChakraAttribute value;
  if (!read_submessage(input, [&](Input& attribute) { return read_attribute_of_v003(attribute, value); })) return false;
  if (value.name == ChakraAttribute::Name::runtime) {
    if (value.number.form == NumberForm::whole) node.duration = value.number.magnitude;
    return true;
  }
  store_attribute(value, node, names);
  return true;
}

bool parse_node_v0_0_3(Input& input, ParsedNode& node, ParsedTrace& trace) {
  while (const std::uint32_t tag = next_tag(input)) {
    const LegacyField legacy = parse_legacy_field(input, tag, node, trace);
    if (legacy == LegacyField::malformed) return false;
    if (legacy == LegacyField::read) continue;
    const bool is_attribute = tag == make_tag(attribute_field, WireType::bytes);
    if (!(is_attribute ? parse_attribute_v0_0_3(input, node, trace.names) : skip_field(input, tag))) return false;
  }
  if (node.name == no_name) node.name = trace.batch.add({});
  return input.ExpectAtEnd();
}

std::optional<CollectiveKind> collective_kind_v0_0_3(std::uint64_t number) {
  using enum CollectiveKind;
  constexpr std::array kinds = {all_reduce, all_to_all, all_gather, reduce_scatter, broadcast};
  if (number >= kinds.size()) return std::nullopt;
  return kinds[number];
}

constexpr TypeNumbering numbering_v0_0_2{node_type_without_metadata, collective_kind_v0_0_3};
constexpr TypeNumbering numbering_v0_0_3{current_node_type, collective_kind_v0_0_3};

bool recognises_v0_0_3(std::string_view beginning) {
  const auto layout = chakra_layout(beginning);
  return layout == ChakraLayout::v0_0_2 || layout == ChakraLayout::v0_0_3;
}

void read_v0_0_3(TraceFile& file, TraceSink& sink) {
  const bool is_v0_0_2 = chakra_layout(file.beginning()) == ChakraLayout::v0_0_2;
  read_chakra_file(file, sink, is_v0_0_2 ? numbering_v0_0_2 : numbering_v0_0_3, parse_node_v0_0_3);
}

}  // namespace

extern constinit const Reader chakra_v0_0_3_reader{
    .name = "chakra-0.0.3",
    .help = "Chakra execution trace, versions 0.0.2 and 0.0.3: dependencies are parents",
    .recognises = recognises_v0_0_3,
    .read = read_v0_0_3,
};

}  // namespace orrery::trace
