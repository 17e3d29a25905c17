#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trace_file.hpp"

namespace orrery::trace {

/// Gives the lines of a text file one after the other, without their ends (a line feed, or carriage return and line
/// feed). Its memory is one chunk, or the longest line if that is more, of 16 MiB at most.
class LineSource {
 public:
  explicit LineSource(TraceFile& file) : file_(file), npu_(file.place().npu) {}

  /// Returns the next line, or nothing at the end of the file. Valid until the next call. Throws Error (bad_input) for
  /// a line that is too long, and for one with a zero byte, which no text has.
  std::optional<std::string_view> next();
  /// Returns the number of the line that `next` returned last, from 1 on.
  std::uint64_t number() const { return number_; }
  /// Returns the place of this line.
  Place place() const;
  /// Sets the NPU that messages name from here on; without one they name none.
  void set_npu(std::optional<std::uint32_t> npu) { npu_ = npu; }

 private:
  bool read_more();

  TraceFile& file_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  ///< range of the bytes that are not consumed
  std::uint64_t number_ = 0;
  std::optional<std::uint32_t> npu_;
  bool is_over_ = false;
  bool has_zero_ = false;  ///< a zero byte has been read
};

}  // namespace orrery::trace
