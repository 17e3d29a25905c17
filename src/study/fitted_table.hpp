#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace orrery::study {

/// A column of a table in a terminal.
struct FittedColumn {
  std::string head;
  std::vector<std::string> cells = {};  ///< [rows]
  bool is_optional = false;             ///< it may be left out where there is no room
};

inline constexpr std::size_t most_fitted_characters = 100;  ///< length of a line

/// Returns the lines of a table of at most `most_fitted_characters`, if that is possible: heads are divided at blanks
/// and underscores over several lines if they are what makes a line too long, and then optional columns are left out,
/// the last one first. `left_out` becomes their number. Columns are aligned on the right.
std::vector<std::string> fitted_lines(std::vector<FittedColumn> columns, std::size_t& left_out);

}  // namespace orrery::study
