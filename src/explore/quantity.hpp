#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "orrery/explore/expression.hpp"

namespace orrery::explore {

/// Returns what one of a unit is in SI units; none for an unknown unit.
std::optional<double> factor_of(std::string_view unit);

/// Returns how many characters of a text are an unsigned number.
std::size_t length_of_number(std::string_view text);

/// Returns the number that a text is, times `factor`: a whole one if the text is and, with a unit, the product is below
/// 2^53; none if the text is no number.
std::optional<Value> number_of(std::string_view text, double factor, bool has_unit);

}  // namespace orrery::explore
