// Chakra execution traces of version 0.0.1: no metadata, and attributes are fields of the node.
#include <fmt/format.h>

#include <array>

#include "chakra_attribute.hpp"
#include "chakra_file.hpp"
#include "chakra_layout.hpp"
#include "chakra_legacy.hpp"
#include "reader.hpp"

namespace orrery::trace {
namespace {

/// The field numbers of a node after id, name, type and parent.
struct FieldOfV001 {
  enum Number : int {
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
};

void set_field_v001(int field, std::uint64_t value, ParsedNode& node) {
  const Number number = whole_number(static_cast<std::int64_t>(value));
  switch (field) {
    case FieldOfV001::tensor_size:
      return node.set(Attribute::tensor_size, number);
    case FieldOfV001::simulated_run_time:
      node.duration = value;
      return;
    case FieldOfV001::num_ops:
      return node.set(Attribute::num_ops, number);
    case FieldOfV001::comm_type:
      return node.set(Attribute::comm_type, number);
    case FieldOfV001::comm_src:
      return node.set(Attribute::comm_src, number);
    case FieldOfV001::comm_dst:
      return node.set(Attribute::comm_dst, number);
    case FieldOfV001::comm_size:
      return node.set(Attribute::comm_size, number);
    case FieldOfV001::comm_tag:
      return node.set(Attribute::comm_tag, number);
    case FieldOfV001::comm_priority:
      return node.set(Attribute::comm_priority, number);
    default:
      return;
  }
}

bool parse_node_v0_0_1(Input& input, ParsedNode& node, ParsedTrace& trace) {
  ChakraAttribute dims;
  while (const std::uint32_t tag = next_tag(input)) {
    const LegacyField legacy = parse_legacy_field(input, tag, node, trace);
    if (legacy == LegacyField::malformed) return false;
    if (legacy == LegacyField::read) continue;
    const int field = field_number(tag);
    std::uint64_t value = 0;
    if (field == FieldOfV001::involved_dim) {
      std::vector<std::uint64_t> flags;
      if (!read_integers(input, tag, flags)) return false;
      for (const std::uint64_t flag : flags) dims.add_flag(flag != 0);
    } else if (wire_type(tag) == WireType::varint) {
      if (!input.ReadVarint64(&value)) return false;
      if (field == FieldOfV001::communicator_id)
        node.group = value == 0 ? no_name : trace.names.intern(fmt::format("{}", value));
      else
        set_field_v001(field, value, node);
    } else if (!skip_field(input, tag)) {
      return false;
    }
  }
  if (node.name == no_name) node.name = trace.batch.add({});
  node.dimensions = dimensions_of(dims.flags, dims.num_flags);
  return input.ExpectAtEnd();
}

std::optional<CollectiveKind> collective_kind_v0_0_1(std::uint64_t number) {
  using enum CollectiveKind;
  constexpr std::array from_one = {all_reduce, all_to_all, all_gather, reduce_scatter};  // INVALID is 0
  if (number == 0 || number > from_one.size()) return std::nullopt;
  return from_one[number - 1];
}

constexpr TypeNumbering numbering_v0_0_1{node_type_without_metadata, collective_kind_v0_0_1};

bool recognises_v0_0_1(std::string_view beginning) { return chakra_layout(beginning) == ChakraLayout::v0_0_1; }

void read_v0_0_1(TraceFile& file, TraceSink& sink) {
  read_chakra_file(file, sink, numbering_v0_0_1, parse_node_v0_0_1);
}

}  // namespace

extern constinit const Reader chakra_v0_0_1_reader{
    .name = "chakra-0.0.1",
    .help = "Chakra execution trace, version 0.0.1: no metadata, attributes are fields",
    .recognises = recognises_v0_0_1,
    .read = read_v0_0_1,
};

}  // namespace orrery::trace
