#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "input.hpp"
#include "raw_trace.hpp"

namespace orrery::trace {

enum class WireType : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, group = 3, end_group = 4, fixed32 = 5 };

constexpr WireType wire_type(std::uint32_t tag) { return static_cast<WireType>(tag & 7u); }
constexpr int field_number(std::uint32_t tag) { return static_cast<int>(tag >> 3); }
constexpr std::uint32_t make_tag(int field, WireType type) {
  return static_cast<std::uint32_t>(field) << 3 | static_cast<std::uint32_t>(type);
}

/// The next tag, or 0 at the end of the message or at a fault: `at_end` tells them apart.
inline std::uint32_t next_tag(Input& input) {
  std::uint32_t tag = 0;
  return input.varint(tag) && field_number(tag) != 0 ? tag : 0;
}
bool skip_field(Input& input, std::uint32_t tag, int depth = 0);
/// A repeated integer, packed or not.
bool read_integers(Input& input, std::uint32_t tag, std::vector<std::uint64_t>& to);

Number whole_number(std::uint64_t value);
Number whole_number(std::int64_t value);
Number whole_number(double value);
/// Of a text: an integer, with a fraction of zeros or without; else any decimal number.
Number whole_number(std::string_view text);

/// An attribute as it stands, of either layout that has attributes. What is not named in `attribute_names` and is not
/// pg_name, involved_dim, inputs, outputs or runtime has no meaning here and is left unread.
struct AttributeValue {
  enum class Name : std::uint8_t { ignored, numeric, pg_name, involved_dim, inputs, outputs, runtime };

  Name name = Name::ignored;
  Attribute numeric = Attribute::is_cpu_op;
  Number number;  ///< of a numeric or bool scalar
  std::optional<std::string_view> text;
  std::optional<std::string_view> texts;  ///< the message of a list of texts
  std::uint64_t flags = 0;                ///< of a list: bit i = entry i is not 0
  unsigned num_flags = 0;

  void add_flag(bool flag);
};

/// Today's Attribute message: a (scalar, list) pair of fields for each type.
bool read_attribute(Input& input, AttributeValue& value);
/// The attribute of 0.0.2 and 0.0.3: its values stand at numbers that moved, so the wire type tells them.
bool read_legacy_attribute(Input& input, AttributeValue& value);

/// Which attribute a name is.
void name_attribute(std::string_view name, AttributeValue& value);

}  // namespace orrery::trace
