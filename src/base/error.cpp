#include "orrery/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "orrery/base/utf8.hpp"

namespace orrery {
namespace {

std::string compose(std::string_view found, std::string_view expected, std::string_view hint) {
  std::string text(found);
  if (!expected.empty()) text += fmt::format("; expected {}", expected);
  if (!hint.empty()) text += fmt::format(". {}", hint);
  return text;
}

std::string compose(const Place& place, std::string_view said) {
  std::string text = place.file;
  if (place.line) text += fmt::format("{}{}", text.empty() ? "line " : ":", *place.line);
  std::string what;
  auto part = [&what](std::string_view piece) { what += (what.empty() ? "" : ", ") + std::string(piece); };
  if (place.key.starts_with("--"))
    part(fmt::format("option {}", cited(place.key)));
  else if (!place.key.empty())
    part(fmt::format("key '{}'", cited(place.key)));
  if (place.npu) part(fmt::format("NPU {}", *place.npu));
  if (place.node) part(fmt::format("node {}", *place.node));
  if (!place.node_name.empty()) what += fmt::format("{}'{}'", what.empty() ? "" : " ", cited(place.node_name));
  if (place.byte_offset) what += fmt::format("{}(byte {})", what.empty() ? "" : " ", *place.byte_offset);
  for (const std::string_view piece : {std::string_view(what), said})
    if (!piece.empty()) text += (text.empty() ? "" : ": ") + std::string(piece);
  return text;
}

}  // namespace

std::string cited(std::string_view text, std::size_t most) {
  std::size_t end = std::min(text.size(), most);
  // A character of several bytes is not cut.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) --end;
  std::string result = printable(text.substr(0, end));
  std::ranges::replace_if(
      result, [](char c) { return c == '\n' || c == '\t'; }, '?');
  if (end < text.size()) result += "...";
  return result;
}

Error::Error(ErrorCode code, const Place& place, std::string_view found, std::string_view expected,
             std::string_view hint)
    : code_(code), place_(place), text_(compose(found, expected, hint)), message_(compose(place_, text_)) {}

Error::Error(ErrorCode code, std::string_view message) : Error(code, Place{}, message) {}

void ensure_failed(std::string_view what, std::source_location where) {
  const std::string_view path = where.file_name();
  throw Error(ErrorCode::internal, fmt::format("{} ({}:{}). This is a fault of Orrery, please report it.", what,
                                               path.substr(path.find_last_of('/') + 1), where.line()));
}

}  // namespace orrery
