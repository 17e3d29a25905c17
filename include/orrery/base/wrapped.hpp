#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orrery {

inline constexpr char no_break = '\x01';  ///< blank at which a line does not end

/// Returns a text in lines of at most so many columns, broken at blanks; further lines are indented. A word that is
/// longer than a line stands alone in one.
std::vector<std::string> wrapped(const std::string& text, std::size_t columns);

}  // namespace orrery
