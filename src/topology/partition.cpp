#include "orrery/topology/partition.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/base/error.hpp"

namespace orrery::topology {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\f\v";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

/// The rank that a line names; nothing for one that does not count.
std::optional<Rank> read_rank(std::string_view line, const Place& place, int num_ranks) {
  const std::string_view text = trimmed(line);
  if (text.empty() || text.front() == '#' || text.front() == '%') return std::nullopt;
  const std::string expected = fmt::format("a rank, 0 to {}", num_ranks - 1);
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error == std::errc::invalid_argument || end != text.data() + text.size())
    throw Error(ErrorCode::bad_input, place, fmt::format("'{}' is not a whole number", text), expected);
  if (error != std::errc{} || rank < 0 || rank >= num_ranks)
    throw Error(ErrorCode::bad_input, place, fmt::format("rank {} does not exist", text), expected,
                "A partition file is made for one number of ranks.");
  return Rank(rank);
}

}  // namespace

Partition::Partition(std::vector<Rank> ranks, int num_ranks) : ranks_(std::move(ranks)) {
  hosted_.resize(static_cast<std::size_t>(num_ranks));
  for (std::size_t npu = 0; npu < ranks_.size(); ++npu)
    hosted_[ranks_[npu].index()].push_back(NpuId(static_cast<std::uint32_t>(npu)));
}

Partition Partition::blocks(std::uint32_t num_npus, int num_ranks) {
  check(num_ranks > 0, "a partition needs at least one rank");
  std::vector<Rank> ranks(num_npus);
  for (std::uint64_t npu = 0; npu < num_npus; ++npu)
    ranks[npu] = Rank(static_cast<int>(npu * static_cast<std::uint64_t>(num_ranks) / num_npus));
  return Partition(std::move(ranks), num_ranks);
}

Partition Partition::from_file(const std::filesystem::path& path, std::uint32_t num_npus, int num_ranks) {
  check(num_ranks > 0, "a partition needs at least one rank");
  std::ifstream file(path);
  if (!file) throw Error(ErrorCode::bad_input, {.file = path.string()}, "the partition file cannot be opened");
  std::vector<Rank> ranks;
  ranks.reserve(num_npus);
  std::string line;
  std::uint64_t number = 0;
  while (std::getline(file, line)) {
    const Place place{.file = path.string(), .line = ++number};
    const std::optional<Rank> rank = read_rank(line, place, num_ranks);
    if (!rank) continue;
    if (ranks.size() == num_npus)
      throw Error(ErrorCode::bad_input, place, "a rank too many",
                  fmt::format("one line for each of the {} NPUs", num_npus));
    ranks.push_back(*rank);
  }
  if (file.bad()) throw Error(ErrorCode::bad_input, {.file = path.string()}, "the partition file cannot be read");
  if (ranks.size() != num_npus)
    throw Error(ErrorCode::bad_input, {.file = path.string(), .line = number},
                fmt::format("the file ends after {} ranks", ranks.size()),
                fmt::format("one line for each of the {} NPUs", num_npus));
  return Partition(std::move(ranks), num_ranks);
}

}  // namespace orrery::topology
