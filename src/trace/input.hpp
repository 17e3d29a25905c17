#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace orrery::trace {

/// Reads protocol buffers' wire format from bytes in memory. What returns bool returns false at a fault, and the input
/// then stands before it.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()) {}
  explicit Input(std::string_view bytes)
      : Input(std::span(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size())) {}

  bool at_end() const { return at_ == end_; }
  /// Bytes read so far.
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }

  bool varint(std::uint64_t& value) {
    if (at_ == end_ || *at_ >= 0x80) return long_varint(value);
    value = *at_++;
    return true;
  }
  /// The low 32 bits.
  bool varint(std::uint32_t& value) {
    std::uint64_t wide = 0;
    if (!varint(wide)) return false;
    value = static_cast<std::uint32_t>(wide);
    return true;
  }
  /// A number of fixed width.
  template <class T>
  bool fixed(T& value) {
    static_assert(std::endian::native == std::endian::little);
    if (left() < sizeof(T)) return false;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return true;
  }
  /// Bytes that follow their length.
  bool view(std::string_view& bytes) {
    const std::uint8_t* const before = at_;
    std::uint64_t length = 0;
    if (!varint(length)) return false;
    if (length > left()) {
      at_ = before;
      return false;
    }
    bytes = {reinterpret_cast<const char*>(at_), length};
    at_ += length;
    return true;
  }
  /// A message within this one. Its positions go on from those here, so that it may take this one's place at a fault.
  std::optional<Input> message() {
    std::string_view bytes;
    if (!view(bytes)) return std::nullopt;
    Input inner = *this;
    inner.at_ -= bytes.size();
    inner.end_ = at_;
    return inner;
  }

 private:
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  bool long_varint(std::uint64_t& value) {
    std::uint64_t sum = 0;
    const std::uint8_t* at = at_;
    for (unsigned shift = 0; shift < 64 && at != end_; shift += 7) {
      const std::uint8_t byte = *at++;
      sum |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte >= 0x80) continue;
      value = sum;
      at_ = at;
      return true;
    }
    return false;
  }

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace orrery::trace
