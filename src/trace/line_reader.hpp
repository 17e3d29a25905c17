#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "line_source.hpp"

namespace orrery::trace {

/// The current line of a text file, and messages that name it.
class LineReader {
 public:
  explicit LineReader(TraceFile& file) : lines_(file) {}

  /// Goes to the next line; returns false at the end of the file. Throws as LineSource does.
  bool next();
  /// Returns the line, valid until `next`.
  std::string_view line() const { return line_; }
  /// Returns the number of the line, from 1 on.
  std::uint64_t number() const { return lines_.number(); }
  /// Throws Error (bad_input) at the line.
  [[noreturn]] void fail(std::string_view found, std::string_view expected, std::string_view remedy = {}) const;

 private:
  LineSource lines_;
  std::string_view line_;
};

/// Returns the words of a line: what blanks, tabs and carriage returns separate.
std::vector<std::string_view> words_in(std::string_view line);

}  // namespace orrery::trace
