#pragma once

#include <cstdint>
#include <cstring>
#include <span>
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

}  // namespace orrery
