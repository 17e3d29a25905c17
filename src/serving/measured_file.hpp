#pragma once

#include <charconv>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "request_lines.hpp"

namespace orrery::serving {

/// A measured table: a CSV file, perhaps packed, with names in some columns and numbers in the others.
class MeasuredFile {
 public:
  /// Opens FOLDER/NAME, or FOLDER/NAME.gz. Throws Error (bad_input) if there is neither.
  MeasuredFile(const std::filesystem::path& folder, const std::string& name)
      : lines_(found(folder, name)), rows_(lines_) {}

  static bool exists(const std::filesystem::path& folder, const std::string& name) {
    std::error_code failure;
    return std::filesystem::exists(folder / name, failure) || std::filesystem::exists(folder / (name + ".gz"), failure);
  }

  bool next() { return rows_.next(); }
  std::size_t column(std::string_view name) const { return rows_.column(name); }
  std::string text(std::size_t column) const { return std::string(rows_.cell(column)); }
  double number(std::size_t column) const {
    const std::string_view cell = rows_.cell(column);
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || cell.empty())
      lines_.fail(fmt::format("'{}' is no number", cited(cell)), "a number");
    return value;
  }

 private:
  static std::filesystem::path found(const std::filesystem::path& folder, const std::string& name) {
    std::error_code failure;
    if (std::filesystem::exists(folder / name, failure)) return folder / name;
    if (std::filesystem::exists(folder / (name + ".gz"), failure)) return folder / (name + ".gz");
    throw Error(ErrorCode::bad_input, {.file = folder.string(), .key = "serving.step.tables"},
                fmt::format("there is neither {} nor {}.gz", name, name), "a folder with measured tables");
  }

  RequestLines lines_;
  CsvRows rows_;
};

}  // namespace orrery::serving
