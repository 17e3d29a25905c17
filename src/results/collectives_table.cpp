#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <vector>

#include "columns.hpp"
#include "format.hpp"
#include "gather.hpp"
#include "orrery/base/error.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/results/bandwidth.hpp"
#include "tables.hpp"

namespace orrery::results {
namespace {

using communicator::CollectiveRecord;

const std::array<Column<CollectiveRecord>, 10> collective_columns{{
    {"group", {"1", "group", "index into /groups"}, [](const CollectiveRecord& c) { return c.group.value(); }},
    {"ordinal",
     {"1", "ordinal", "number of the collective among those of its group, from 0"},
     [](const CollectiveRecord& c) { return c.ordinal; }},
    {"kind",
     {"1", "kind", "index into the attribute values"},
     [](const CollectiveRecord& c) { return static_cast<std::int8_t>(c.kind); },
     format::collective_kinds},
    {"bytes",
     {"byte", "bytes",
      "all-gather and gather: the shard that each member brings; other kinds: the whole buffer of a member"},
     [](const CollectiveRecord& c) { return static_cast<std::int64_t>(c.size.count()); }},
    {"members", {"1", "members", "number of members"}, [](const CollectiveRecord& c) { return c.members; }},
    {"first_arrival",
     {"ps", "first arrival", "time at which the first member joined"},
     [](const CollectiveRecord& c) { return c.first_arrival.ps(); }},
    {"last_arrival",
     {"ps", "last arrival", "time at which the last member joined"},
     [](const CollectiveRecord& c) { return c.last_arrival.ps(); }},
    {"finish",
     {"ps", "finish", "time at which the last member completed the collective"},
     [](const CollectiveRecord& c) { return c.finish.ps(); }},
    {"algorithm_bandwidth",
     {"byte/s", "algorithm bandwidth",
      "bytes (all-gather, gather: times members) over finish - last_arrival; NaN if that is 0"},
     algorithm_bandwidth},
    {"bus_bandwidth",
     {"byte/s", "bus bandwidth",
      "algorithm bandwidth times the factor of the kind in nccl-tests, to compare with a link's bandwidth"},
     [](const CollectiveRecord& c) {
       return algorithm_bandwidth(c) * bus_factor(static_cast<collective::Kind>(c.kind), c.members);
     }},
}};

/// Returns the records with groups as in the file, in the order of group and ordinal.
std::vector<CollectiveRecord> renumbered(std::span<const CollectiveRecord> mine,
                                         std::span<const std::uint32_t> group_position) {
  std::vector<CollectiveRecord> records(mine.begin(), mine.end());
  for (CollectiveRecord& record : records) {
    ensure(record.group.index() < group_position.size(), "the group of a collective is known");
    record.group = GroupId(group_position[record.group.index()]);
  }
  std::ranges::sort(records, {}, &CollectiveRecord::group);
  return records;
}

/// Returns the number of all collectives of all ranks, recorded or not. Collective.
std::int64_t count_all(std::span<const communicator::CollectiveSum> mine, parallel::Communicator& world) {
  std::int64_t all = 0;
  for (const auto& sum : mine) all += static_cast<std::int64_t>(sum.count);
  world.sum(std::span(&all, 1));
  return all;
}

/// Orders records by all fields, so that the order does not depend on the ranks that they come from.
bool comes_before(const CollectiveRecord& a, const CollectiveRecord& b) {
  return std::tuple(a.ordinal, a.first_arrival, a.last_arrival, a.finish, a.kind, a.size, a.members) <
         std::tuple(b.ordinal, b.first_arrival, b.last_arrival, b.finish, b.kind, b.size, b.members);
}

}  // namespace

void write_collectives(Output& output, const RankResults& mine, std::span<const std::uint32_t> group_position) {
  auto& world = output.world();
  std::vector<CollectiveRecord> records;
  world.agree([&] { records = renumbered(mine.collectives, group_position); });
  std::vector<std::int64_t> rows(group_position.size(), 0);
  for (const auto& record : records) ++rows[record.group.index()];
  world.sum(rows);
  const auto recorded = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const auto all = count_all(mine.collective_sums, world);
  output.on_root([&](File& file) {
    const auto num_rows = static_cast<std::uint64_t>(recorded);
    file.group("/collectives", "one row per recorded collective, in the order of group and ordinal");
    file.scale("/collectives/collective", num_rows, {"1", "collective", "row of the columns"});
    file.attribute("/collectives", "recorded", recorded);
    file.attribute("/collectives", "total", all);
    create_columns(file, "/collectives", collective_columns, num_rows, "collective", File::Layout::compressed);
  });
  auto consume = [&](std::uint64_t first, std::span<const CollectiveRecord> block) {
    write_columns(output.file(), "/collectives", collective_columns, first, block);
  };
  gather_in_order<CollectiveRecord>(
      world, records, rows, [](const CollectiveRecord& c) { return c.group.index(); }, comes_before, consume);
}

}  // namespace orrery::results
