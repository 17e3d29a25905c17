#include "orrery/partition/partition.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "orrery/base/text.hpp"

namespace orrery::partition {
namespace {

/// The rank that a line names; nothing for one that does not count.
std::optional<Rank> read_rank(std::string_view line, const Place& place, int num_ranks) {
  const std::string_view text = trimmed(line, " \t\r\f\v");
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

/// Runs of `length` NPUs dealt to ranks in contiguous blocks; `length` divides `num_npus`.
std::vector<Rank> dealt(std::uint32_t num_npus, std::uint32_t length, int num_ranks) {
  ensure(num_ranks > 0, "a partition needs at least one rank");
  const std::uint64_t num_runs = num_npus / length;
  std::vector<Rank> ranks(num_npus);
  for (std::uint32_t npu = 0; npu < num_npus; ++npu)
    ranks[npu] = Rank(static_cast<int>(npu / length * static_cast<std::uint64_t>(num_ranks) / num_runs));
  return ranks;
}

}  // namespace

void PartitionOptions::validate(const topology::Topology& topology, const Place& named_by) const {
  if (strategy != Strategy::dimension || dimension < topology.num_dimensions()) return;
  throw Error(ErrorCode::bad_input, named_by, fmt::format("found {}", name(*this)),
              fmt::format("a dimension of the topology, 0 to {}", topology.num_dimensions() - 1));
}

std::string name(const PartitionOptions& options) {
  switch (options.strategy) {
    case Strategy::block:
      return "block";
    case Strategy::round_robin:
      return "round-robin";
    case Strategy::dimension:
      return fmt::format("dimension:{}", options.dimension);
    case Strategy::metis:
      return "metis";
    case Strategy::file:
      return options.file.string();
  }
  ensure_failed("a strategy has a name", std::source_location::current());
}

Partition::Partition(std::vector<Rank> ranks, int num_ranks) : ranks_(std::move(ranks)) {
  hosted_.resize(static_cast<std::size_t>(num_ranks));
  for (std::size_t npu = 0; npu < ranks_.size(); ++npu)
    hosted_[ranks_[npu].index()].push_back(NpuId(static_cast<std::uint32_t>(npu)));
}

Partition Partition::make(const PartitionOptions& options, const topology::Topology& topology, int num_ranks) {
  switch (options.strategy) {
    case Strategy::block:
      return blocks(topology.num_npus(), num_ranks);
    case Strategy::round_robin:
      return round_robin(topology.num_npus(), num_ranks);
    case Strategy::dimension:
      return lines(topology, options.dimension, num_ranks);
    case Strategy::file:
      return from_file(options.file, topology.num_npus(), num_ranks);
    case Strategy::metis:
      break;
  }
  ensure_failed("a partition that the topology alone gives", std::source_location::current());
}

Partition Partition::blocks(std::uint32_t num_npus, int num_ranks) {
  return Partition(dealt(num_npus, 1, num_ranks), num_ranks);
}

Partition Partition::round_robin(std::uint32_t num_npus, int num_ranks) {
  ensure(num_ranks > 0, "a partition needs at least one rank");
  std::vector<Rank> ranks(num_npus);
  for (std::uint32_t npu = 0; npu < num_npus; ++npu)
    ranks[npu] = Rank(static_cast<int>(npu % static_cast<std::uint32_t>(num_ranks)));
  return Partition(std::move(ranks), num_ranks);
}

Partition Partition::lines(const topology::Topology& topology, std::uint32_t last, int num_ranks) {
  ensure(last < topology.num_dimensions(), "a partition by a dimension that is not there");
  // Dimension 0 varies fastest, so NPUs that differ in dimensions up to `last` only have ids in one run.
  return Partition(dealt(topology.num_npus(), topology.stride(last) * topology.dimension(last).size, num_ranks),
                   num_ranks);
}

Partition Partition::from_ranks(std::vector<Rank> ranks, int num_ranks) {
  ensure(num_ranks > 0, "a partition needs at least one rank");
  for (const Rank rank : ranks)
    ensure(rank.value() >= 0 && rank.value() < num_ranks, "a partition names a rank that does not exist");
  return Partition(std::move(ranks), num_ranks);
}

Partition Partition::from_file(const std::filesystem::path& path, std::uint32_t num_npus, int num_ranks) {
  ensure(num_ranks > 0, "a partition needs at least one rank");
  std::istringstream file(read_text(path));
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
                  fmt::format("{}, one for each NPU", counted(num_npus, "line")));
    ranks.push_back(*rank);
  }
  if (ranks.size() != num_npus)
    throw Error(ErrorCode::bad_input, {.file = path.string(), .line = number},
                fmt::format("the file ends after {}", counted(ranks.size(), "rank")),
                fmt::format("{}, one for each NPU", counted(num_npus, "line")));
  return Partition(std::move(ranks), num_ranks);
}

}  // namespace orrery::partition
