#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "orrery/base/error.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

/// Adds up `of_ranks`, [ranks][dimensions]. Throws Error (bad_input) if a sum over ranks does not fit.
std::vector<std::int64_t> sums_of_bytes(std::span<const std::int64_t> of_ranks, std::size_t dimensions) {
  std::vector<std::int64_t> sums(dimensions, 0);
  for (std::size_t i = 0; i < of_ranks.size(); ++i) {
    const std::size_t d = i % dimensions;
    // A rank whose sum did not fit sends the largest number.
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
    if (__builtin_add_overflow(sums[d], of_ranks[i], &sums[d]) || sums[d] == most)
      throw Error(ErrorCode::bad_input, {},
                  fmt::format("in dimension {} of the topology the NPUs send more than 2^63 - 1 bytes in all, the most "
                              "that results hold",
                              d),
                  {}, "Simulate fewer iterations, or a part of the system.");
  }
  return sums;
}

/// Adds up `of_ranks`, [ranks][dimensions], in ps. Adds whole numbers, so that the partition does not change the sum.
std::vector<double> sums_of_times(std::span<const SumOfTimes> of_ranks, std::size_t dimensions) {
  std::vector<SumOfTimes> sums(dimensions, 0);
  for (std::size_t i = 0; i < of_ranks.size(); ++i) sums[i % dimensions] += of_ranks[i];
  return {sums.begin(), sums.end()};
}

/// Returns [num_dimensions] busy time over links times simulated time; 0 for a dimension of one NPU, which has no
/// links. NaN where dimensions share the links of a graph: no number of links belongs to one of them.
std::vector<double> utilisations(std::span<const double> busy_time, const RunDescription& run, Time simulated_time) {
  if (run.network.lies_on_graph) return std::vector(busy_time.size(), std::numeric_limits<double>::quiet_NaN());
  std::vector<double> utilisation(busy_time.size(), 0);
  for (std::size_t d = 0; d < busy_time.size(); ++d) {
    const auto links = static_cast<double>(run.network.links.empty() ? run.num_npus : run.network.links[d]);
    if (links > 0 && simulated_time > Time::zero())
      utilisation[d] = busy_time[d] / (links * static_cast<double>(simulated_time.ps()));
  }
  return utilisation;
}

void write_dimensions(File& file, const RunDescription& run, const NetworkFigures& all,
                      std::span<const double> busy_time) {
  const auto& sizes = run.network.dimension_sizes;
  file.group("/network", "one row per dimension of the topology");
  file.scale("/network/dimension", sizes.size(), {"1", "dimension", "dimension of the topology, 0 is innermost"});
  file.column<std::uint32_t>("/network/size", sizes, {"1", "size", "NPUs along the dimension"});
  file.column<std::int64_t>("/network/bytes", all.bytes, {"byte", "bytes", "bytes sent by all NPUs"});
  file.column<double>("/network/busy_time", busy_time,
                      {"ps", "busy time", "time in which a link carried bytes, summed over links"});
  std::vector<std::uint32_t> sharers = run.network.sharers;
  sharers.resize(sizes.size(), 1);
  file.column<std::uint32_t>(
      "/network/sharers", sharers,
      {"1", "sharers", "number of collectives of an NPU among which the bandwidth of the dimension is divided"});
  file.column<double>(
      "/network/utilisation", all.utilisation,
      {"1", "utilisation", "busy time over the product of links and simulated time; NaN on the links of a graph"});
  for (const char* name : {"size", "bytes", "busy_time", "sharers", "utilisation"})
    file.attach(std::string("/network/") + name, "/network/dimension");
}

}  // namespace

NetworkFigures write_network(Output& output, const RunDescription& run, const NetworkRecord& mine,
                             Time simulated_time) {
  auto& world = output.world();
  const std::size_t dimensions = run.network.dimension_sizes.size();
  std::vector<std::int64_t> bytes(dimensions, 0);
  std::vector<SumOfTimes> busy(dimensions, 0);
  world.agree([&] {
    ensure(mine.bytes.size() <= dimensions && mine.busy_time.size() <= dimensions, "network figures are per dimension");
    ensure(run.network.links.empty() || run.network.links.size() == dimensions, "links are per dimension");
  });
  for (std::size_t d = 0; d < mine.bytes.size(); ++d)
    bytes[d] = static_cast<std::int64_t>(std::min(mine.bytes[d], Bytes::most()).count());
  std::ranges::copy(mine.busy_time, busy.begin());
  const auto bytes_of_ranks = world.gather(std::span<const std::int64_t>(bytes), Rank(0));
  const auto busy_of_ranks = world.gather(std::span<const SumOfTimes>(busy), Rank(0));
  NetworkFigures all;
  output.on_root([&](File& file) {
    const auto busy_time = sums_of_times(busy_of_ranks, dimensions);
    all = {sums_of_bytes(bytes_of_ranks, dimensions), utilisations(busy_time, run, simulated_time)};
    write_dimensions(file, run, all, busy_time);
  });
  return all;
}

}  // namespace orrery::results
