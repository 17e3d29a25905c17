#pragma once

#include <string>
#include <string_view>

namespace orrery::config {

/// A text that cannot be left out: it has no default, and an empty one does not compile.
class Text {
 public:
  consteval Text(const char* text) : text_(text) {
    if (text_.empty()) throw "a descriptor has an empty text";
  }

  constexpr std::string_view view() const { return text_; }
  std::string string() const { return std::string(text_); }

 private:
  std::string_view text_;
};

}  // namespace orrery::config
