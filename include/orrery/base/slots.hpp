#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"

namespace orrery {

/// Keeps values in numbered slots, for events that carry a number in place of a value. The slot of a value that was
/// taken is used again. Every operation takes amortised constant time.
template <class T>
class Slots {
 public:
  /// Returns the slot in which the value is from now on. References to other values become invalid.
  std::uint32_t put(T&& value) {
    if (free_.empty()) {
      values_.push_back(std::move(value));
      return static_cast<std::uint32_t>(values_.size() - 1);
    }
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    values_[slot] = std::move(value);
    return slot;
  }
  std::uint32_t put(const T& value) { return put(T(value)); }
  T& operator[](std::uint32_t slot) { return values_[slot]; }
  const T& operator[](std::uint32_t slot) const { return values_[slot]; }
  /// Frees the slot. Its value stays readable until the next `put`.
  void free(std::uint32_t slot) { free_.push_back(slot); }
  T take(std::uint32_t slot) {
    free(slot);
    return values_[slot];
  }
  /// Returns how many slots hold a value.
  std::size_t in_use() const { return values_.size() - free_.size(); }
  /// Calls visit(slot, value) for each slot that holds a value, ascending. O(slots).
  template <class Visit>
  void for_each(Visit visit) const {
    std::vector<bool> is_free(values_.size());
    for (const std::uint32_t slot : free_) is_free[slot] = true;
    for (std::uint32_t slot = 0; slot < values_.size(); ++slot)
      if (!is_free[slot]) visit(slot, values_[slot]);
  }

  /// Writes or reads all values, each in its slot.
  void serialize(Archive& archive) { archive(values_, free_); }

 private:
  std::vector<T> values_;
  std::vector<std::uint32_t> free_;
};

}  // namespace orrery
