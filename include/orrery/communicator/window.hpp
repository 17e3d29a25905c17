#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::communicator {

/// What goes on in a group, one `T` for each of its collectives, numbered. What is over (`T::done`) leaves from the
/// front; its memory serves again (`T::clear`). No allocation once it has grown.
template <class T>
class Window {
 public:
  bool empty() const { return count_ == 0; }
  /// Of the first that is not over, or not known to have begun.
  std::uint32_t first() const { return first_; }
  std::uint32_t count() const { return count_; }

  /// Made, with those before it, if need be; that moves others.
  T& at(std::uint32_t ordinal) {
    ensure(ordinal >= first_, "a collective that is over comes again");
    while (count_ <= ordinal - first_) {
      if (count_ == ring_.size()) grow();
      ++count_;
    }
    return ring_[place(ordinal)];
  }
  const T& at(std::uint32_t ordinal) const {
    ensure(ordinal >= first_ && ordinal - first_ < count_, "a collective that is not under way");
    return ring_[place(ordinal)];
  }

  void retire() {
    for (; count_ > 0 && ring_[place(first_)].done; ++first_, --count_) ring_[place(first_)].clear();
  }

 private:
  std::size_t place(std::uint32_t ordinal) const { return ordinal & (ring_.size() - 1); }

  void grow() {
    std::vector<T> larger(ring_.empty() ? 1 : 2 * ring_.size());
    for (std::uint32_t i = first_; i != first_ + count_; ++i)
      larger[i & (larger.size() - 1)] = std::move(ring_[place(i)]);
    ring_ = std::move(larger);
  }

  std::vector<T> ring_;  // a power of two
  std::uint32_t first_ = 0, count_ = 0;
};

}  // namespace orrery::communicator
