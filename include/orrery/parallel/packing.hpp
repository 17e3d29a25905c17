#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::parallel {

/// Writes values one after the other, for another rank to read with Unpacker.
class Packer {
 public:
  /// Appends the bytes of one value.
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    const auto bytes = std::as_bytes(std::span(&value, 1));
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// Appends the number of values and their bytes.
  template <class T>
  void put_all(std::span<const T> values) {
    put(static_cast<std::uint64_t>(values.size()));
    const auto bytes = std::as_bytes(values);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  /// Appends a text with its length.
  void put_text(std::string_view text) { put_all(std::span<const char>(text.data(), text.size())); }
  /// Returns the bytes that were put, and leaves this object empty.
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads the output of a Packer in the order of writing. Every read checks that the bytes suffice (a broken invariant).
class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  template <class T>
  T get() {
    T value;
    copy(&value, sizeof value);
    return value;
  }
  template <class T>
  std::vector<T> get_all() {
    const auto count = get<std::uint64_t>();
    orrery::ensure(count <= bytes_.size() / sizeof(T), "a message between ranks is too short");
    std::vector<T> values(count);
    copy(values.data(), count * sizeof(T));
    return values;
  }
  std::string get_text() {
    const auto characters = get_all<char>();
    return {characters.begin(), characters.end()};
  }

 private:
  void copy(void* to, std::size_t size) {
    orrery::ensure(size <= bytes_.size(), "a message between ranks is too short");
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_ = bytes_.subspan(size);
  }

  std::span<const std::byte> bytes_;
};

}  // namespace orrery::parallel
