#include "orrery/base/utf8.hpp"

#include <cstddef>
#include <cstdint>

namespace orrery {
namespace {

/// A character of a text: its code, and its length in bytes; 0 bytes where the text is not UTF-8.
struct Character {
  std::uint32_t code;
  std::size_t bytes;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return {0, 0};
  std::uint32_t code = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return {0, 0};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code < 0xe000;
  if (code < least[bytes] || code > 0x10ffff || is_surrogate) return {0, 0};
  return {code, bytes};
}

template <class Keep>
std::string kept(std::string_view text, Keep keep) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_character(text);
    if (next.bytes > 0 && keep(next.code))
      result += text.substr(0, next.bytes);
    else
      result += '?';
    text.remove_prefix(next.bytes > 0 ? next.bytes : 1);
  }
  return result;
}

/// Directions of writing, which reorder what stands around them.
bool is_direction(std::uint32_t code) {
  return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  return kept(text, [](std::uint32_t) { return true; });
}

std::string printable(std::string_view text) {
  return kept(text, [](std::uint32_t code) {
    const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    return code == '\n' || code == '\t' || !(is_control || is_direction(code));
  });
}

}  // namespace orrery
