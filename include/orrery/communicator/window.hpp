#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "orrery/base/error.hpp"

namespace orrery::communicator {

/// The collectives of a communicator that are under way, one `T` for each ordinal. Those that are over (`T::done`)
/// leave from the front, and their memory serves again (`T::clear`). Nothing allocates memory once it has grown.
template <class T>
class Window {
 public:
  bool empty() const { return count_ == 0; }
  /// Returns the ordinal of the first collective that is not over, or that is not known to have begun.
  std::uint32_t first() const { return first_; }
  std::uint32_t count() const { return count_; }

  /// Returns the collective with this ordinal. Adds it, and those before it, if need be; that moves the others.
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

  /// Begins with this ordinal. None may be known yet.
  void start_at(std::uint32_t ordinal) {
    ensure(empty(), "a collective is under way before those of a checkpoint");
    first_ = ordinal;
  }

  /// Lets those leave that are over and have none under way before them.
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
