#pragma once

#include <span>
#include <string_view>

#include "orrery/base/registry.hpp"

namespace orrery::serving {

/// How values are stored.
struct NumberFormat {
  std::string_view name, help;
  double bytes = 2;  ///< bytes of a value, with its share of a scale

  static std::span<const NumberFormat* const> registry();
};

using FormatName = Registered<NumberFormat>;

}  // namespace orrery::serving
