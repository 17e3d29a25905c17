#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/base/error.hpp"

namespace orrery::serving {

/// Where a number lies among ascending ones: between two neighbours, with the weight of the upper one. Below the first
/// both are the first; above the last the two last ones, with a weight above 1.
struct Bracket {
  std::size_t low = 0, high = 0;
  double weight = 0;
};

template <class Number>
Bracket bracket(const std::vector<Number>& values, double x) {
  if (values.size() == 1 || x <= static_cast<double>(values.front())) return {};
  const auto above = std::ranges::lower_bound(values, x, {}, [](Number v) { return static_cast<double>(v); });
  const auto i = std::clamp<std::size_t>(static_cast<std::size_t>(above - values.begin()), 1, values.size() - 1);
  const auto low = static_cast<double>(values[i - 1]), high = static_cast<double>(values[i]);
  return {i - 1, i, (x - low) / (high - low)};
}

/// A function given at points: straight lines between them, its first value below them, the last line above them.
class MeasuredLine {
 public:
  MeasuredLine() = default;
  /// `points`: (x, value), not empty.
  explicit MeasuredLine(std::vector<std::pair<double, double>> points) {
    std::ranges::sort(points);
    for (const auto& [x, y] : points) {
      x_.push_back(x);
      y_.push_back(y);
    }
  }

  double operator()(double x) const {
    if (x_.size() == 1 || x < x_.front()) return note(x), y_.front();
    auto i = static_cast<std::size_t>(std::ranges::lower_bound(x_, x) - x_.begin());
    if (i < x_.size() && x_[i] == x) return y_[i];
    if (i == x_.size()) note(x);
    i = std::clamp<std::size_t>(i, 1, x_.size() - 1);
    return y_[i - 1] + (y_[i] - y_[i - 1]) * (x - x_[i - 1]) / (x_[i] - x_[i - 1]);
  }
  double least() const { return *std::ranges::min_element(y_); }
  double last() const { return x_.back(); }
  /// Returns the largest number that it was asked for, if that is above the last point; 0 otherwise.
  double most_beyond() const { return most_; }

 private:
  /// Takes note of a number beyond the last point. Throws Error (bad_input) if it is far beyond.
  void note(double x) const {
    constexpr double far = 4;
    if (x_.size() == 1 || x <= x_.back()) return;
    if (x > far * x_.back() && x_.back() > 0)
      throw Error(ErrorCode::bad_input, {.key = "serving.step.tables"},
                  fmt::format("a step has a size of {:.0f}, and its table ends at {:.0f}", x, x_.back()),
                  "at most 4 times as much", "Measure larger steps, or give the instances smaller ones.");
    most_ = std::max(most_, x);
  }

  std::vector<double> x_, y_;
  mutable double most_ = 0;
};

}  // namespace orrery::serving
