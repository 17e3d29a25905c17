#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace_file.hpp"

namespace orrery::trace {

/// Gives the messages of a trace file one after the other, each preceded by its length as a varint. Its memory is one
/// chunk, or the largest message if that is more: it grows with the bytes that are there, not with the length alone.
class MessageSource {
 public:
  struct Message {
    std::span<const std::uint8_t> bytes;  ///< valid until `next` is called while `holds_next` says no
    std::uint64_t offset;                 ///< offset of the first byte after the length
  };

  explicit MessageSource(TraceFile& file);

  /// Returns the next message, or nothing at the end of the file. Throws Error (bad_input) if the file ends within a
  /// message.
  std::optional<Message> next();
  /// Says whether the next message is in memory, so that `next` leaves those before it where they are.
  bool holds_next() const;
  /// Returns how many bytes are still to come for each byte given so far; 0 if that is not known.
  double remaining_per_given() const;

 private:
  std::size_t available() const { return end_ - begin_; }
  bool provide(std::size_t count);
  std::optional<std::uint64_t> next_length();
  [[noreturn]] void fail(std::string_view found, std::string_view expected) const;

  TraceFile& file_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;       ///< begin of the bytes that are not consumed
  std::size_t end_ = 0;         ///< end of the bytes that were read
  std::uint64_t position_ = 0;  ///< position of `begin_` in the file
  bool any_ = false;            ///< whether a message was given
};

}  // namespace orrery::trace
