#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace_file.hpp"

namespace orrery::trace {

/// The lines of a text file, one after the other, without their ends (LF or CR LF).
class LineReader {
 public:
  explicit LineReader(TraceFile& file) : file_(file) {}

  /// Goes to the next line; returns false at the end of the file. Throws Error (bad_input) for a line of more than
  /// 1 MiB.
  bool next();
  /// Returns the line, valid until `next`.
  std::string_view line() const { return line_; }
  /// Returns the number of the line, from 1 on.
  std::uint64_t number() const { return number_; }
  Place place() const;
  /// Throws Error (bad_input) at the line.
  [[noreturn]] void fail(std::string_view found, std::string_view expected, std::string_view remedy = {}) const;

 private:
  bool fill();

  TraceFile& file_;
  std::array<std::uint8_t, 65536> piece_;
  std::size_t size_ = 0;
  std::size_t at_ = 0;
  std::string line_;
  std::uint64_t number_ = 0;
};

/// Returns the words of a line: what blanks, tabs and carriage returns separate.
std::vector<std::string_view> words_of(std::string_view line);

}  // namespace orrery::trace
