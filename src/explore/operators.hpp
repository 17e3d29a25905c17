#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "orrery/explore/expression.hpp"

namespace orrery::explore {

enum class Expression::Op : std::uint8_t {
  value,
  name,
  both,    // and
  either,  // or
  negation,
  minus,  // the sign
  sum,
  difference,
  product,
  quotient,
  remainder,
  power,
  equal,
  unequal,
  at_most,
  less,
  at_least,
  more,
  minimum,
  maximum,
  floor,
  ceil,
  log2,
  divides,
  power_of_two,
};

/// How the operators of Expression::Op are written.
inline constexpr std::array<std::string_view, 25> operator_names{
    "value", "name", "and", "or", "not", "-",   "+",   "-",     "*",    "/",    "%",       "**",          "==",
    "!=",    "<=",   "<",   ">=", ">",   "min", "max", "floor", "ceil", "log2", "divides", "power_of_two"};

}  // namespace orrery::explore
