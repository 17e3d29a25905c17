#include "repeats.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace orrery::synthesis {
namespace {

/// Numbers parts so that equal parts, whatever they hold, have equal numbers.
class WordNumbers {
 public:
  std::uint32_t of(const Part& part) {
    std::vector<std::uint32_t> key{part.is_loop() ? 1U : 0U, part.is_loop() ? part.count : part.symbol};
    if (part.is_loop())
      for (const Part& inner : *part.body) key.push_back(of(inner));
    return numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<std::vector<std::uint32_t>, std::uint32_t> numbers_;
};

/// Returns where the least rotation of a body begins (Booth's problem, by comparing candidates). O(length).
std::size_t least_rotation(std::span<const std::uint32_t> body) {
  const std::size_t n = body.size();
  std::size_t i = 0, j = 1, k = 0;
  while (i < n && j < n && k < n) {
    const auto a = body[(i + k) % n], b = body[(j + k) % n];
    if (a == b) {
      ++k;
      continue;
    }
    (a > b ? i : j) += k + 1;
    if (i == j) ++j;
    k = 0;
  }
  return std::min(i, j);
}

/// A stretch with a period.
struct Run {
  std::size_t begin = 0, count = 0, whole = 0;
};

/// Finds the runs of one period, from left to right, without overlap.
std::vector<Run> runs_of(std::span<const std::uint32_t> words, std::size_t period, std::size_t least_count) {
  std::vector<Run> result;
  for (std::size_t i = 0; i + period < words.size();) {
    std::size_t end = i;
    while (end + period < words.size() && words[end] == words[end + period]) ++end;
    if (end - i + period >= least_count * period) {
      const std::size_t begin = i + least_rotation(words.subspan(i, period));
      const std::size_t count = (end + period - begin) / period;
      if (count >= least_count) result.push_back({begin, count, (end + period - i) / period});
      i = end + period;
    } else {
      i = end + 1;
    }
  }
  return result;
}

/// Replaces the runs of one period by loops.
std::vector<Part> folded(std::vector<Part> parts, std::span<const Run> runs, std::size_t period) {
  std::vector<Part> result;
  std::size_t at = 0;
  for (const Run& run : runs) {
    for (; at < run.begin; ++at) result.push_back(std::move(parts[at]));
    std::vector<Part> body(parts.begin() + static_cast<std::ptrdiff_t>(at),
                           parts.begin() + static_cast<std::ptrdiff_t>(at + period));
    std::uint32_t length = 0;
    for (const Part& part : body) length += part.length;
    result.push_back({.count = static_cast<std::uint32_t>(run.count),
                      .body = std::make_shared<const std::vector<Part>>(std::move(body)),
                      .whole = static_cast<std::uint32_t>(run.whole),
                      .length = length * static_cast<std::uint32_t>(run.count)});
    at = run.begin + run.count * period;
  }
  for (; at < parts.size(); ++at) result.push_back(std::move(parts[at]));
  return result;
}

}  // namespace

std::vector<Part> find_loops(std::span<const std::uint32_t> sequence, std::uint32_t longest) {
  std::vector<Part> parts;
  for (const auto symbol : sequence) parts.push_back({.symbol = symbol});
  WordNumbers numbers;
  std::vector<std::uint32_t> words;
  const auto number = [&] {
    words.clear();
    for (const Part& part : parts) words.push_back(numbers.of(part));
  };
  number();
  for (std::size_t period = 1; period <= longest && 2 * period <= parts.size();) {
    const auto runs = runs_of(words, period, period < 3 ? 3 : 2);
    if (runs.empty()) {
      ++period;
      continue;
    }
    parts = folded(std::move(parts), runs, period);
    number();
    period = 1;
  }
  return parts;
}

void flatten(std::span<const Part> parts, std::vector<std::uint32_t>& out) {
  for (const Part& part : parts) {
    if (!part.is_loop()) {
      out.push_back(part.symbol);
      continue;
    }
    for (std::uint32_t i = 0; i < part.count; ++i) flatten(*part.body, out);
  }
}

}  // namespace orrery::synthesis
