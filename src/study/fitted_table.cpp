#include "fitted_table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace orrery::study {
namespace {

/// A column whose head has one line or several.
struct LaidColumn {
  std::vector<std::string> head;
  const FittedColumn* column;

  std::size_t width() const {
    std::size_t width = 0;
    for (const std::string& line : head) width = std::max(width, line.size());
    for (const std::string& cell : column->cells) width = std::max(width, cell.size());
    return width;
  }
};

/// Divides a name behind its underscores and at its blanks.
std::vector<std::string> divided_head(const std::string& head) {
  std::vector<std::string> lines(1);
  for (const char c : head) {
    if (c == ' ') {
      lines.emplace_back();
      continue;
    }
    lines.back() += c;
    if (c == '_') lines.emplace_back();
  }
  if (lines.back().empty()) lines.pop_back();
  return lines;
}

std::size_t width_of_line(const std::vector<LaidColumn>& columns) {
  std::size_t width = 0;
  for (const LaidColumn& column : columns) width += column.width() + (width == 0 ? 0 : 2);
  return width;
}

std::string joined_cells(const std::vector<LaidColumn>& columns, const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i)
    line += fmt::format("{}{:>{}}", i == 0 ? "" : "  ", cells[i], columns[i].width());
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::vector<std::string> fitted_lines(std::vector<FittedColumn> columns, std::size_t& left_out) {
  std::vector<LaidColumn> laid;
  for (const FittedColumn& column : columns) laid.push_back({{column.head}, &column});
  if (width_of_line(laid) > most_fitted_characters)
    for (LaidColumn& column : laid) column.head = divided_head(column.column->head);
  left_out = 0;
  for (std::size_t i = laid.size(); i-- > 0 && width_of_line(laid) > most_fitted_characters;) {
    if (!laid[i].column->is_optional) continue;
    laid.erase(laid.begin() + static_cast<std::ptrdiff_t>(i));
    ++left_out;
  }
  std::size_t height = 1;
  for (const LaidColumn& column : laid) height = std::max(height, column.head.size());
  std::vector<std::string> lines;
  const auto add = [&](const auto& cell_of) {
    std::vector<std::string> cells;
    for (const LaidColumn& column : laid) cells.push_back(cell_of(column));
    lines.push_back(joined_cells(laid, cells));
  };
  for (std::size_t i = 0; i < height; ++i)
    add([&](const LaidColumn& column) {
      const std::size_t above = height - column.head.size();
      return i < above ? std::string() : column.head[i - above];
    });
  for (std::size_t row = 0; !columns.empty() && row < columns.front().cells.size(); ++row)
    add([&](const LaidColumn& column) { return column.column->cells[row]; });
  return lines;
}

}  // namespace orrery::study
