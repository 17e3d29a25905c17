#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/text.hpp"
#include "orrery/partition/strategy.hpp"

namespace orrery::partition {
namespace {

/// Returns the rank that a line names; nothing for a blank line or a comment.
std::optional<Rank> read_rank(std::string_view line, const Place& place, int num_ranks) {
  const std::string_view text = trimmed(line, " \t\r\f\v");
  if (text.empty() || text.front() == '#' || text.front() == '%') return std::nullopt;
  const std::string expected = fmt::format("a rank, 0 to {}", num_ranks - 1);
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    throw Error(ErrorCode::bad_input, place, fmt::format("'{}' is not a whole number", cited(text)), expected);
  if (error != std::errc{} || rank < 0 || rank >= num_ranks)
    throw Error(ErrorCode::bad_input, place, fmt::format("rank {} does not exist", text), expected,
                "A partition file is made for one number of ranks.");
  return Rank(rank);
}

/// Reads the file that partitions/README.md describes. Throws Error (bad_input) with file and line for what is not a
/// number, a rank that does not exist, and too few or too many lines.
Partition read_rank_map(std::string_view path, const Problem& problem) {
  ensure(problem.num_ranks > 0, "a partition needs at least one rank");
  const auto num_npus = problem.topology.num_npus();
  const std::string name(path);
  const std::string one_each = fmt::format("{}, one for each NPU", counted(num_npus, "line"));
  std::istringstream file(read_text(name));
  std::vector<Rank> ranks;
  ranks.reserve(num_npus);
  std::string line;
  std::uint64_t number = 0;
  while (std::getline(file, line)) {
    const Place place{.file = name, .line = ++number};
    const std::optional<Rank> rank = read_rank(line, place, problem.num_ranks);
    if (!rank) continue;
    if (ranks.size() == num_npus) throw Error(ErrorCode::bad_input, place, "a rank too many", one_each);
    ranks.push_back(*rank);
  }
  if (ranks.size() != num_npus)
    throw Error(ErrorCode::bad_input, {.file = name, .line = number},
                fmt::format("the file ends after {}", counted(ranks.size(), "rank")), one_each);
  return {std::move(ranks), problem.num_ranks};
}

}  // namespace

Strategy rank_map() {
  return {.name = "rank map",
          .parameter = "FILE",
          .example = "partitions/pairs_8.part.4",
          .help = "the rank in line i of the file",
          .make = read_rank_map};
}

}  // namespace orrery::partition
