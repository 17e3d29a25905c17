// Expressions of studies (docs/exploration.md): any text is an expression or is refused, and an expression has a value
// or is refused. The first line is the expression; the others are the values of its names, in the order of their use.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz_input.hpp"
#include "orrery/explore/expression.hpp"

namespace {
using namespace orrery;

/// Takes a line off the text.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  const std::string_view line = take_line(text);
  (void)fuzz::accepts([&] {
    const auto expression = explore::Expression::parse(line, {.file = "study.yaml", .line = 1});
    explore::Names names;
    for (const std::string& name : expression.names()) names[name] = explore::value_of(take_line(text));
    const explore::Value value = expression.evaluate(names);
    (void)explore::as_real(explore::value_of(explore::to_text(value)));
    (void)expression.holds(names);
  });
  return 0;
}
