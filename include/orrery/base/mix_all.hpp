#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "orrery/base/mix.hpp"

namespace orrery {

/// Mixes the bytes of values into a hash. The type must not have padding.
template <class T>
std::uint64_t mix_all(std::uint64_t hash, std::span<const T> values) {
  static_assert(std::has_unique_object_representations_v<T>);
  const auto bytes = std::as_bytes(values);
  std::size_t at = 0;
  std::uint64_t word = 0;
  for (; at + sizeof(word) <= bytes.size(); at += sizeof(word)) {
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    hash = mix(hash, word);
  }
  word = 0;
  if (at < bytes.size()) std::memcpy(&word, bytes.data() + at, bytes.size() - at);
  return mix(mix(hash, word), bytes.size());
}

/// Returns a hash of a text, by which texts on other ranks, in files and of other runs are compared.
inline std::uint64_t digest_of(std::string_view text) { return mix_all(0, std::span(text)); }

}  // namespace orrery
