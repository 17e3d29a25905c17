#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery {

/// Writes values one after the other, or reads what was written, with the same calls: `archive(a, b)` writes or
/// replaces a and b. So a class with state has one function `serialize(Archive&)` for both directions.
///
/// It takes trivially copyable values as their bytes (which must hold no addresses), classes with `serialize`, and
/// strings, vectors, pairs, optional and owned values and maps of such. With GCC, bytes between the members of a value
/// are written as zeros. Every read checks that the bytes suffice (a broken invariant: whoever keeps the bytes guards
/// them against damage).
class Archive {
 public:
  /// Makes an archive that writes.
  Archive() = default;
  /// Makes an archive that reads these bytes, which must outlive it.
  explicit Archive(std::span<const std::byte> bytes) : left_(bytes), reads_(true) {}

  bool reads() const { return reads_; }
  /// Returns whether all bytes have been read.
  bool is_at_end() const { return left_.empty(); }

  template <class... T>
  void operator()(T&... values) {
    (take(values), ...);
  }
  /// Writes or replaces `size` bytes.
  void take_bytes(void* bytes, std::size_t size) {
    if (!reads_) {
      const auto* const first = static_cast<const std::byte*>(bytes);
      written_.insert(written_.end(), first, first + size);
      return;
    }
    ensure(size <= left_.size(), "what was saved is shorter than what is read");
    if (size > 0) std::memcpy(bytes, left_.data(), size);
    left_ = left_.subspan(size);
  }
  /// Returns the bytes that were written, and leaves this object empty.
  std::vector<std::byte> written() { return std::exchange(written_, {}); }

 private:
  template <class T>
  static constexpr bool has_serialize = requires(T& value, Archive& archive) {
    value.serialize(archive);
  };
  // An optional value that is not there has bytes that nothing has set.
  template <class T>
  static constexpr bool is_optional = requires(T& value) {
    value.has_value();
    value.reset();
  };
  template <class T>
  static constexpr bool is_plain =
      std::is_trivially_copyable_v<T> && !has_serialize<T> && !std::is_pointer_v<T> && !is_optional<T>;

  template <class T>
  void take(T& value) {
    if constexpr (has_serialize<T>)
      value.serialize(*this);
    else if constexpr (is_plain<T>)
      take_plain(std::span(&value, 1));
    else
      take_container(value);
  }

  template <class T>
  void take_plain(std::span<T> values) {
#if __has_builtin(__builtin_clear_padding)
    if constexpr (!std::has_unique_object_representations_v<T> && !std::is_floating_point_v<T>)
      if (!reads_)
        for (T& value : values) __builtin_clear_padding(&value);
#endif
    take_bytes(values.data(), values.size_bytes());
  }

  std::size_t take_size(std::size_t size) {
    std::uint64_t count = size;
    take(count);
    return static_cast<std::size_t>(count);
  }
  /// Limits a number of values that take so many bytes each by the bytes that are left.
  void require(std::size_t count, std::size_t bytes) const {
    ensure(!reads_ || count <= left_.size() / bytes, "what was saved is shorter than what is read");
  }

  void take_container(std::string& text) {
    const std::size_t size = take_size(text.size());
    require(size, 1);
    text.resize(size);
    take_bytes(text.data(), size);
  }
  template <class T>
  void take_container(std::vector<T>& values) {
    const std::size_t size = take_size(values.size());
    require(size, is_plain<T> ? sizeof(T) : 1);
    values.resize(size);
    if constexpr (is_plain<T>) {
      take_plain(std::span(values));
    } else {
      for (T& value : values) take(value);
    }
  }
  void take_container(std::vector<bool>& values) {
    const std::size_t size = take_size(values.size());
    require(size, 1);
    values.resize(size);
    for (std::size_t i = 0; i < size; ++i) {
      bool value = values[i];
      take(value);
      values[i] = value;
    }
  }
  template <class A, class B>
  void take_container(std::pair<A, B>& pair) {
    take(pair.first);
    take(pair.second);
  }
  template <class T>
  void take_container(std::optional<T>& value) {
    bool is_there = value.has_value();
    take(is_there);
    if (reads_) value.reset();
    if (!is_there) return;
    if (reads_) value.emplace();
    take(*value);
  }
  template <class T>
  void take_container(std::unique_ptr<T>& value) {
    bool is_there = value != nullptr;
    take(is_there);
    if (reads_) value = is_there ? std::make_unique<T>() : nullptr;
    if (is_there) take(*value);
  }
  template <class K, class V>
  void take_container(std::map<K, V>& entries) {
    std::vector<std::pair<K, V>> list;
    if (!reads_) list.assign(entries.begin(), entries.end());
    take(list);
    if (!reads_) return;
    entries.clear();
    for (auto& entry : list) entries.insert(std::move(entry));
  }

  std::vector<std::byte> written_;
  std::span<const std::byte> left_;
  bool reads_ = false;
};

}  // namespace orrery
