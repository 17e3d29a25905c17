#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace orrery::trace {

/// Keeps each text once and numbers texts in the order of their arrival. Views stay valid as long as the pool lives.
class NamePool {
 public:
  NamePool();

  /// Returns the number of `text`. Allocates memory only for a text that is new.
  std::uint32_t intern(std::string_view text);
  /// Tells the pool that a file begins. Its texts are likely to be those of the file before, in the same order, so
  /// `intern` compares each with the text at its place there before it looks it up.
  void start_file() { at_ = 0; }
  std::string_view operator[](std::uint32_t index) const { return texts_[index]; }
  std::size_t size() const { return texts_.size(); }
  /// Returns the bytes of memory that texts and their table hold.
  std::size_t bytes() const;

 private:
  struct Slot {
    std::uint32_t hash;
    std::uint32_t entry;  ///< index + 1; 0 = free
  };

  static constexpr std::size_t most_expected = std::size_t{1} << 16;

  std::uint32_t look_up(std::string_view text);
  std::string_view store(std::string_view text);
  void grow();

  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t used_ = 0;      ///< bytes of the last block that are used
  std::size_t capacity_ = 0;  ///< bytes of the last block
  std::size_t total_ = 0;     ///< bytes of all blocks
  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> expected_;  ///< numbers of the first texts of the file before
  std::size_t at_ = most_expected;       ///< the next entry of `expected_` to compare with
  std::vector<Slot> slots_;              ///< open addressing; the number of slots is a power of two
};

}  // namespace orrery::trace
