#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace orrery::trace {

/// Reads protocol buffers' wire format from one message in memory. All functions that return bool return false for
/// bytes that are not such a message; the input then stands at the fault.
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

/// Returns the next tag, or 0 at the end of the message and at a fault: `ExpectAtEnd` tells them apart. It is asked
/// first because it is inline, while reading a tag at the end is not.
inline std::uint32_t next_tag(Input& input) {
  const std::uint32_t tag = input.ExpectAtEnd() ? 0 : input.ReadTagNoLastTag();
  return field_number(tag) == 0 ? 0 : tag;
}
/// Skips the value of the field with this tag.
bool skip_field(Input& input, std::uint32_t tag);
/// Finds the bytes of a length-delimited field, as a view into the message; the input then stands before them.
inline bool find_view(Input& input, std::string_view& view) {
  int length = 0, left = 0;
  const void* data = nullptr;
  if (!input.ReadVarintSizeAsInt(&length)) return false;
  input.GetDirectBufferPointerInline(&data, &left);
  view = {static_cast<const char*>(data), static_cast<std::size_t>(length)};
  return length <= left;
}
/// Reads the bytes of a length-delimited field, as a view into the message; the input then stands behind them.
inline bool read_view(Input& input, std::string_view& view) {
  return find_view(input, view) && input.Skip(static_cast<int>(view.size()));
}
/// Calls read(input) for the message in a length-delimited field; the input then stands behind it, or at the fault.
template <class Read>
bool read_submessage(Input& input, Read read) {
  std::string_view bytes;
  if (!find_view(input, bytes)) return false;
  Input message = input_over(bytes);
  const bool good = read(message);
  input.Skip(good ? static_cast<int>(bytes.size()) : message.CurrentPosition());
  return good;
}
/// Appends a repeated integer, packed or not, to `to`.
bool read_integers(Input& input, std::uint32_t tag, std::vector<std::uint64_t>& to);

}  // namespace orrery::trace
