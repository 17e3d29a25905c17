#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::config {

/// The known word nearest to `word` in edit distance (insert, delete, replace, swap of neighbours), case ignored; empty
/// if none is near enough to be a misspelling. Ties: the first. Cost O(words * length^2).
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

/// "Did you mean 'x'?" if a known word is near, else "Known: a, b, c."; empty if nothing is known.
std::string suggestion(std::string_view word, std::span<const std::string_view> known);

/// "a, b or c".
std::string list(std::span<const std::string_view> words);

}  // namespace orrery::config
