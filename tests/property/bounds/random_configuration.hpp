#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace orrery::study {

/// Draws whole numbers, the same ones with every standard library.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  /// Returns a number from 0 to below `count`.
  std::uint64_t below(std::uint64_t count) { return engine_() % count; }
  /// Returns true in so many of a hundred cases.
  bool percent(std::uint64_t share) { return below(100) < share; }
  template <class T>
  T of(const std::vector<T>& values) {
    return values[below(values.size())];
  }
  std::string word(const std::vector<std::string>& words) { return of(words); }

 private:
  std::mt19937_64 engine_;
};

/// Returns the text of a CONFIG.yaml with a small system, a small transformer and a way to divide it. Some are refused:
/// not all that is drawn fits together.
std::string random_configuration(Draw& draw);

}  // namespace orrery::study
