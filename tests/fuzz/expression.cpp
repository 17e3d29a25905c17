// Expressions of studies (docs/exploration.md): any text is an expression or is refused, and an expression has a value
// or is refused. The first line is the expression; the others are the values of its names, in the order of their use.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz_input.hpp"
#include "orrery/explore/expression.hpp"
#include "orrery/explore/physical_dimension.hpp"

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
  std::optional<explore::Expression> expression;
  if (!fuzz::accepts([&] { expression = explore::Expression::parse(line, {.file = "study.yaml", .line = 1}); }))
    return 0;
  explore::Names names;
  std::map<std::string, std::optional<explore::PhysicalDimension>> dimensions;
  for (const std::string& name : expression->names()) {
    const std::string_view value = take_line(text);
    names[name] = explore::value_of(value);
    const auto of_unit = explore::dimension_of_unit(value);
    dimensions[name] = of_unit ? of_unit : explore::dimension_of_quantity(value);
    (void)explore::si_unit_of(value);
  }
  (void)expression->limited_name();
  (void)expression->demanded_name();
  (void)fuzz::accepts([&] {
    if (const auto found = expression->dimension([&](const std::string& name) { return dimensions[name]; }))
      (void)explore::to_text(*found);
  });
  (void)fuzz::accepts([&] { (void)expression->sides(names); });
  (void)fuzz::accepts([&] { (void)expression->holds(names); });
  (void)fuzz::accepts([&] {
    const explore::Value value = expression->evaluate(names);
    (void)explore::as_real(explore::value_of(explore::to_text(value)));
    if (explore::is_unit("GB/s")) (void)explore::to_text_in("GB/s", value);
  });
  return 0;
}
