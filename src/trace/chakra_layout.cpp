#include "chakra_layout.hpp"

#include <algorithm>

#include "content.hpp"
#include "wire.hpp"

namespace orrery::trace {
namespace {

constexpr int attribute_of_current = 10;
constexpr int attribute_of_v003 = 11;
constexpr int first_field_of_v001 = 12;
constexpr int last_field_of_v001 = 20;

/// An attribute of the current layout starts with its name.
bool is_current_attribute(std::string_view bytes) {
  Input input = input_over(bytes);
  std::string_view name;
  if (next_tag(input) != make_tag(1, WireType::bytes) || !read_view(input, name) || name.empty()) return false;
  while (const std::uint32_t tag = next_tag(input))
    if (!skip_field(input, tag)) return false;
  return input.ExpectAtEnd();
}

/// An attribute of 0.0.2 and 0.0.3 has its type, an enum, in field 2.
bool is_attribute_of_v003(std::string_view bytes) {
  Input input = input_over(bytes);
  while (const std::uint32_t tag = next_tag(input)) {
    if (tag == make_tag(2, WireType::varint)) return true;
    if (!skip_field(input, tag)) return false;
  }
  return false;
}

/// Returns the layout that the fields of one message show; nothing if they show none, or are `malformed`.
std::optional<ChakraLayout> layout_of(std::string_view message, bool has_metadata, bool& malformed) {
  Input input = input_over(message);
  std::optional<ChakraLayout> seen;
  malformed = true;
  while (const std::uint32_t tag = next_tag(input)) {
    const int field = field_number(tag);
    if (wire_type(tag) == WireType::bytes && (field == attribute_of_current || field == attribute_of_v003)) {
      std::string_view bytes;
      if (!read_view(input, bytes)) return std::nullopt;
      if (field == attribute_of_current && is_current_attribute(bytes)) return ChakraLayout::current;
      if (field == attribute_of_v003 && is_attribute_of_v003(bytes)) return ChakraLayout::v0_0_3;
      continue;
    }
    const bool of_v001 = field == attribute_of_current || (field >= first_field_of_v001 && field <= last_field_of_v001);
    if (of_v001 && wire_type(tag) == WireType::varint && !has_metadata) seen = ChakraLayout::v0_0_1;
    if (!skip_field(input, tag)) return std::nullopt;
  }
  malformed = !input.ExpectAtEnd();
  return seen;
}

/// Gives the messages that lie in the beginning of a file, one after the other.
class FirstMessages {
 public:
  explicit FirstMessages(std::string_view beginning) : input_(input_over(beginning)) {}

  struct Message {
    std::string_view bytes;
    bool is_whole;  ///< else its end is beyond the beginning
  };
  /// Returns the next message; nothing at the end, or where there is no length of a message.
  std::optional<Message> next() {
    int length = 0, available = 0;
    const void* data = nullptr;
    if (input_.ExpectAtEnd() || !input_.ReadVarintSizeAsInt(&length)) return {};
    input_.GetDirectBufferPointerInline(&data, &available);
    const int count = std::min(length, available);
    input_.Skip(count);
    return Message{{static_cast<const char*>(data), static_cast<std::size_t>(count)}, length <= available};
  }

 private:
  Input input_;
};

/// Says whether a message, as far as it is there, has tags and lengths as protocol buffers have them, and begins with
/// a field that a node or the metadata may begin with.
bool may_be_of_chakra(const FirstMessages::Message& message) {
  Input input = input_over(message.bytes);
  bool is_first = true;
  while (const std::uint32_t tag = next_tag(input)) {
    const bool is_known = field_number(tag) <= last_field_of_v001 &&
                          (wire_type(tag) == WireType::varint || wire_type(tag) == WireType::bytes);
    if (is_first && !is_known) return false;
    is_first = false;
    if (!skip_field(input, tag)) return !message.is_whole;
  }
  return input.ExpectAtEnd() || !message.is_whole;
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

std::string_view precision_in(std::span<const std::uint8_t> metadata) {
  constexpr int name_field = 1, text_field = 29;
  std::string_view found;
  Input input = input_over(metadata);
  while (const std::uint32_t tag = next_tag(input)) {
    std::string_view name, text;
    const auto read_texts = [&](Input& attribute) {
      while (const std::uint32_t inner = next_tag(attribute)) {
        const bool is_text = wire_type(inner) == WireType::bytes;
        const bool good = is_text && field_number(inner) == name_field   ? read_view(attribute, name)
                          : is_text && field_number(inner) == text_field ? read_view(attribute, text)
                                                                         : skip_field(attribute, inner);
        if (!good) return false;
      }
      return attribute.ExpectAtEnd();
    };
    if (field_number(tag) != 2) {
      if (!skip_field(input, tag)) return found;
      continue;
    }
    if (!read_submessage(input, read_texts)) return found;
    if (name == "precision") found = text;
  }
  return found;
}

std::optional<ChakraLayout> chakra_layout(std::string_view beginning) {
  FirstMessages messages(beginning);
  auto message = messages.next();
  if (!message || is_known_kind(beginning) || !may_be_of_chakra(*message)) return {};
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(message->bytes.data()), message->bytes.size());
  const bool has_metadata = message->is_whole && is_metadata(bytes);
  const bool says_v002 = has_metadata && message->bytes.find("0.0.2") != std::string_view::npos &&
                         message->bytes.find("chakra.0.0.4") == std::string_view::npos;
  if (has_metadata) message = messages.next();
  for (bool malformed = false; message && !malformed; message = messages.next())
    if (const auto layout = layout_of(message->bytes, has_metadata, malformed))
      return *layout == ChakraLayout::v0_0_3 && says_v002 ? ChakraLayout::v0_0_2 : *layout;
  return ChakraLayout::current;
}

}  // namespace orrery::trace
