#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "raw_trace.hpp"

namespace orrery::trace {

/// Protocol buffers' wire format, over one message in memory. All functions that return bool return false for bytes
/// that are no such message; the input then stands at the fault.
using Input = google::protobuf::io::CodedInputStream;

enum class WireType : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, group = 3, end_group = 4, fixed32 = 5 };

constexpr WireType wire_type(std::uint32_t tag) { return static_cast<WireType>(tag & 7u); }
constexpr int field_number(std::uint32_t tag) { return static_cast<int>(tag >> 3); }
constexpr std::uint32_t make_tag(int field, WireType type) {
  return static_cast<std::uint32_t>(field) << 3 | static_cast<std::uint32_t>(type);
}

inline Input input_over(std::span<const std::uint8_t> bytes) {
  return Input(bytes.data(), static_cast<int>(bytes.size()));
}
inline Input input_over(std::string_view bytes) {
  return Input(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
}

/// The next tag, or 0 at the end of the message or at a fault: `ExpectAtEnd` tells them apart. It is asked first, as it
/// is inline and what reads a tag at the end is not.
inline std::uint32_t next_tag(Input& input) {
  const std::uint32_t tag = input.ExpectAtEnd() ? 0 : input.ReadTagNoLastTag();
  return field_number(tag) == 0 ? 0 : tag;
}
bool skip_field(Input& input, std::uint32_t tag);
/// The bytes of a length-delimited field, as a view into the message; the input then stands before them.
inline bool find_view(Input& input, std::string_view& view) {
  int length = 0, left = 0;
  const void* data = nullptr;
  if (!input.ReadVarintSizeAsInt(&length)) return false;
  input.GetDirectBufferPointerInline(&data, &left);
  view = {static_cast<const char*>(data), static_cast<std::size_t>(length)};
  return length <= left;
}
/// The same; the input then stands behind them.
inline bool read_view(Input& input, std::string_view& view) {
  return find_view(input, view) && input.Skip(static_cast<int>(view.size()));
}
/// What `read` makes of the message in a length-delimited field; the input then stands behind it, or at the fault.
template <class Read>
bool read_message(Input& input, Read read) {
  std::string_view bytes;
  if (!find_view(input, bytes)) return false;
  Input message = input_over(bytes);
  const bool good = read(message);
  input.Skip(good ? static_cast<int>(bytes.size()) : message.CurrentPosition());
  return good;
}
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
