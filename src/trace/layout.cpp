#include "layout.hpp"

#include <string_view>

#include "wire.hpp"

namespace orrery::trace {
namespace {

constexpr int attribute_today = 10;
constexpr int attribute_legacy = 11;
constexpr int first_field_of_v001 = 12;
constexpr int last_field_of_v001 = 20;

/// An attribute of today starts with its name.
bool is_attribute_today(std::string_view bytes) {
  Input input = input_over(bytes);
  std::string_view name;
  if (next_tag(input) != make_tag(1, WireType::bytes) || !read_view(input, name) || name.empty()) return false;
  while (const std::uint32_t tag = next_tag(input))
    if (!skip_field(input, tag)) return false;
  return input.ExpectAtEnd();
}

/// An attribute of 0.0.2 and 0.0.3 has its type, an enum, in field 2.
bool is_attribute_legacy(std::string_view bytes) {
  Input input = input_over(bytes);
  while (const std::uint32_t tag = next_tag(input)) {
    if (tag == make_tag(2, WireType::varint)) return true;
    if (!skip_field(input, tag)) return false;
  }
  return false;
}

/// What the fields of one message say of the layout, nothing if they do not tell or are `malformed`.
std::optional<Layout> layout_of(std::span<const std::uint8_t> message, bool has_metadata, bool& malformed) {
  Input input = input_over(message);
  std::optional<Layout> seen;
  malformed = true;
  while (const std::uint32_t tag = next_tag(input)) {
    const int field = field_number(tag);
    if (wire_type(tag) == WireType::bytes && (field == attribute_today || field == attribute_legacy)) {
      std::string_view bytes;
      if (!read_view(input, bytes)) return std::nullopt;
      if (field == attribute_today && is_attribute_today(bytes)) return Layout::today;
      if (field == attribute_legacy && is_attribute_legacy(bytes)) return Layout::v0_0_3;
      continue;
    }
    const bool of_v001 = field == attribute_today || (field >= first_field_of_v001 && field <= last_field_of_v001);
    if (of_v001 && wire_type(tag) == WireType::varint && !has_metadata) seen = Layout::v0_0_1;
    if (!skip_field(input, tag)) return std::nullopt;
  }
  malformed = !input.ExpectAtEnd();
  return seen;
}

}  // namespace

bool is_metadata(std::span<const std::uint8_t> message) {
  Input input = input_over(message);
  while (const std::uint32_t tag = next_tag(input)) {
    if (tag != make_tag(1, WireType::bytes) && tag != make_tag(2, WireType::bytes)) return false;
    if (!skip_field(input, tag)) return false;
  }
  return input.ExpectAtEnd();
}

FileFormat detect_format(MessageSource& source) {
  FileFormat format;
  bool says_v002 = false;
  bool first = true, malformed = false;
  while (!malformed) {
    const auto message = source.next();
    if (!message) break;
    if (first && is_metadata(message->bytes)) {
      format.has_metadata = true;
      const std::string_view text(reinterpret_cast<const char*>(message->bytes.data()), message->bytes.size());
      says_v002 = text.find("0.0.2") != std::string_view::npos && text.find("chakra.0.0.4") == std::string_view::npos;
    } else if (const auto layout = layout_of(message->bytes, format.has_metadata, malformed)) {
      format.layout = *layout == Layout::v0_0_3 && says_v002 ? Layout::v0_0_2 : *layout;
      break;
    }
    first = false;
  }
  source.rewind();
  return format;
}

}  // namespace orrery::trace
