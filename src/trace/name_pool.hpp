#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace orrery::trace {

/// Keeps each text once and numbers texts in the order of their arrival. Views stay valid as long as the pool lives.
class NamePool {
 public:
  NamePool();

  /// Returns the number of `text`. Allocates memory only for a text that is new.
  std::uint32_t intern(std::string_view text);
  /// Writes the number of each of `texts` to `numbers`. In a large pool this is faster than to intern them one by one:
  /// each look-up waits for memory, and these wait at the same time.
  void intern(std::span<const std::string_view> texts, std::span<std::uint32_t> numbers);
  /// Returns the number of `text`, or nothing if the pool does not hold it.
  std::optional<std::uint32_t> find(std::string_view text) const;
  /// Tells the pool that a file begins. Its texts are likely to be those of the file before, in the same order, so
  /// `intern` compares each with the text at its place there before it looks it up.
  void start_file() { at_ = 0; }
  std::string_view operator[](std::uint32_t index) const {
    const char* const text = texts_[index];
    std::uint32_t size;
    std::memcpy(&size, text - sizeof(size), sizeof(size));
    return {text, size};
  }
  std::size_t size() const { return texts_.size(); }
  /// Returns the bytes of memory that texts and their table hold.
  std::size_t bytes() const;

 private:
  struct Slot {
    std::uint32_t hash;
    std::uint32_t entry;  ///< index + 1; 0 = free
  };

  static constexpr std::size_t most_expected = std::size_t{1} << 16;

  /// Returns the slot of `text`: a free one if the pool does not hold it.
  std::size_t slot_of(std::string_view text, std::uint32_t hash) const;
  std::uint32_t look_up(std::string_view text, std::uint32_t hash);
  const char* store(std::string_view text);
  void grow();

  std::vector<std::vector<char>> blocks_;  ///< none grows beyond its first capacity, so texts stay where they are
  std::size_t total_ = 0;                  ///< capacity of all blocks
  std::vector<const char*> texts_;         ///< texts, each preceded by 32 bits with its size
  std::vector<std::uint32_t> expected_;    ///< numbers of the first texts of the file before
  std::size_t at_ = most_expected;         ///< the next entry of `expected_` to compare with
  std::vector<Slot> slots_;                ///< open addressing; the number of slots is a power of two
};

/// Collects texts of several nodes, to intern them together.
class NameBatch {
 public:
  /// Adds a text, which must stay where it is until `intern`, and returns its index in the batch.
  std::uint32_t add(std::string_view text) {
    texts_.push_back(text);
    return static_cast<std::uint32_t>(texts_.size() - 1);
  }
  /// Says whether the batch is large enough to be interned.
  bool is_full() const { return texts_.size() >= full; }
  /// Interns the texts and empties the batch. Returns the number of each text, by its index; valid until the next call.
  std::span<const std::uint32_t> intern(NamePool& pool) {
    numbers_.resize(texts_.size());
    pool.intern(texts_, numbers_);
    texts_.clear();
    return numbers_;
  }

 private:
  static constexpr std::size_t full = 256;

  std::vector<std::string_view> texts_;
  std::vector<std::uint32_t> numbers_;
};

}  // namespace orrery::trace
