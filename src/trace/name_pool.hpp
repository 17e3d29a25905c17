#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace orrery::trace {

/// Texts kept once each and numbered in order of arrival. Views stay valid as long as the pool lives.
class NamePool {
 public:
  NamePool();

  /// The number of `text`. Allocates only for a text that is new.
  std::uint32_t intern(std::string_view text);
  /// A file begins, whose texts are likely to be those of the file before, in the same order. They are compared with
  /// these before they are looked up.
  void start_file() { at_ = 0; }
  std::string_view operator[](std::uint32_t index) const { return texts_[index]; }
  std::size_t size() const { return texts_.size(); }
  std::size_t bytes() const;  ///< memory held by texts and their table

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
  std::size_t used_ = 0;      ///< bytes used of the last block
  std::size_t capacity_ = 0;  ///< bytes of the last block
  std::size_t total_ = 0;     ///< bytes of all blocks
  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> expected_;  ///< numbers of the first texts of the file before
  std::size_t at_ = most_expected;       ///< in `expected_`
  std::vector<Slot> slots_;              ///< open addressing; the number of slots is a power of two
};

}  // namespace orrery::trace
