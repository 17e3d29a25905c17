#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// So many unknown names of one mapping get a suggestion, so that the search for them stays cheap.
inline constexpr std::size_t most_suggestions = 100;

/// Returns the known word that is nearest to `word` in edit distance (insert, delete, replace, swap of neighbours),
/// upper and lower case alike; empty if none is near enough to be a misspelling. Of equally near words it returns the
/// first. Words of more than 80 characters have no nearest one. Cost O(words * length^2).
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// Returns "Did you mean 'x'?" if a known word is near, else "Known here: a, b, c."; empty if nothing is known.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

/// Returns "a, b or c".
std::string list(std::span<const std::string_view> words);

}  // namespace orrery
