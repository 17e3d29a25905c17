#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "byte_reader.hpp"

namespace orrery::trace {

/// The messages of a trace file one after the other, each preceded by its length as a varint. Memory: one chunk, or
/// the largest message if that is more; a length is never trusted beyond the bytes that are really there.
class MessageSource {
 public:
  struct Message {
    std::span<const std::uint8_t> bytes;  ///< valid until the next call
    std::uint64_t offset;                 ///< of the first byte after the length
  };

  MessageSource(const std::filesystem::path& path, Place place);

  /// Nothing at the end of the file. Throws Error (bad_input) if the file ends within a message.
  std::optional<Message> next();
  /// Bytes still to come for each byte given so far; 0 if that is not known.
  double remaining_per_given() const;
  /// Back to the first message.
  void rewind();

 private:
  std::size_t available() const { return end_ - begin_; }
  bool provide(std::size_t count);
  std::optional<std::uint64_t> next_length();
  [[noreturn]] void fail(std::string_view found, std::string_view expected) const;

  Place place_;
  ByteReader reader_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;       ///< of what is not consumed
  std::size_t end_ = 0;         ///< of what was read
  std::uint64_t position_ = 0;  ///< in the file of `begin_`
  bool any_ = false;            ///< a message was given
};

}  // namespace orrery::trace
