#include "orrery/base/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace orrery {
namespace {

char lower_case_of(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

/// Returns the optimal string alignment distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = previous[j - 1] + (lower_case_of(a[i - 1]) == lower_case_of(b[j - 1]) ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
      if (i > 1 && j > 1 && lower_case_of(a[i - 1]) == lower_case_of(b[j - 2]) &&
          lower_case_of(a[i - 2]) == lower_case_of(b[j - 1]))
        current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  constexpr std::size_t longest = 80;
  if (word.size() > longest) return {};
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string_view candidate : known) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    if (longer - std::min(word.size(), candidate.size()) >= least) continue;  // the distance is at least that
    const std::size_t d = edit_distance(word, candidate);
    if (d < least && d < longer) {
      least = d;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> known) {
  if (known.empty()) return {};
  if (const auto best = nearest(word, known); !best.empty()) return fmt::format("Did you mean '{}'?", best);
  return fmt::format("Known here: {}.", fmt::join(known, ", "));
}

std::string list(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", words[i]);
  return text;
}

}  // namespace orrery
