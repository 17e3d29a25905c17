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

/// A collective, and what a library says of it.
struct CollectiveRow : CollectiveRecord {
  LibraryRecord library;
};

std::vector<std::string> resource_names() {
  return {"latency", "links in the node", "NIC", "dimension", "GPU channels"};
}

const std::array<Column<CollectiveRow>, 11> library_columns{{
    {"algorithm",
     {"1", "algorithm", "index into the attribute values: what the library's time counts"},
     [](const CollectiveRow& c) { return static_cast<std::int8_t>(c.library.algorithm); },
     library_algorithms},
    {"bound",
     {"1", "bound", "index into the attribute values: the resource that decides how long the bytes take"},
     [](const CollectiveRow& c) { return static_cast<std::int8_t>(c.library.bound); },
     resource_names},
    {"bound_dimension",
     {"1", "bound dimension", "the dimension, if the resource is one; else 0"},
     [](const CollectiveRow& c) { return c.library.dimension; }},
    {"bound_bytes",
     {"byte", "bound bytes", "bytes of a member that pass the resource"},
     [](const CollectiveRow& c) { return c.library.bytes; }},
    {"bound_capacity",
     {"byte/s", "bound capacity", "what the resource carries for a member"},
     [](const CollectiveRow& c) { return c.library.capacity; }},
    {"bound_share",
     {"1", "bound share", "share of the capacity that the bytes reach"},
     [](const CollectiveRow& c) { return c.library.share; }},
    {"latency",
     {"s", "latency", "time of a collective without bytes"},
     [](const CollectiveRow& c) { return c.library.latency; }},
    {"ramp", {"s", "ramp", "time for filling the pipelines"}, [](const CollectiveRow& c) { return c.library.ramp; }},
    {"transfer",
     {"s", "transfer", "time of the bytes in the resource"},
     [](const CollectiveRow& c) { return c.library.transfer; }},
    {"extrapolated",
     {"1", "extrapolated", "1 if the network or the group is unlike those that were measured"},
     [](const CollectiveRow& c) { return static_cast<std::int8_t>(c.library.is_extrapolated ? 1 : 0); }},
    {"error",
     {"1", "error", "relative standard error of the time"},
     [](const CollectiveRow& c) { return c.library.error; }},
}};

const std::array<Column<CollectiveRow>, 10> collective_columns{{
    {"group", {"1", "group", "index into /groups"}, [](const CollectiveRow& c) { return c.group.value(); }},
    {"ordinal",
     {"1", "ordinal", "number of the collective among those of its group, from 0"},
     [](const CollectiveRow& c) { return c.ordinal; }},
    {"kind",
     {"1", "kind", "index into the attribute values"},
     [](const CollectiveRow& c) { return static_cast<std::int8_t>(c.kind); },
     format::collective_kinds},
    {"bytes",
     {"byte", "bytes",
      "all-gather and gather: the shard that each member brings; other kinds: the whole buffer of a member"},
     [](const CollectiveRow& c) { return static_cast<std::int64_t>(c.size.count()); }},
    {"members", {"1", "members", "number of members"}, [](const CollectiveRow& c) { return c.members; }},
    {"first_arrival",
     {"ps", "first arrival", "time at which the first member joined"},
     [](const CollectiveRow& c) { return c.first_arrival.ps(); }},
    {"last_arrival",
     {"ps", "last arrival", "time at which the last member joined"},
     [](const CollectiveRow& c) { return c.last_arrival.ps(); }},
    {"finish",
     {"ps", "finish", "time at which the last member completed the collective"},
     [](const CollectiveRow& c) { return c.finish.ps(); }},
    {"algorithm_bandwidth",
     {"byte/s", "algorithm bandwidth",
      "bytes (all-gather, gather: times members) over finish - last_arrival; NaN if that is 0"},
     [](const CollectiveRow& c) { return algorithm_bandwidth(c); }},
    {"bus_bandwidth",
     {"byte/s", "bus bandwidth",
      "algorithm bandwidth times the factor of the kind in nccl-tests, to compare with a link's bandwidth"},
     [](const CollectiveRow& c) {
       return algorithm_bandwidth(c) * bus_factor(static_cast<collective::Kind>(c.kind), c.members);
     }},
}};

/// Returns the rows with groups as in the file, in the order of group and ordinal.
std::vector<CollectiveRow> renumbered(const RankResults& mine, std::span<const std::uint32_t> group_position) {
  std::vector<CollectiveRow> rows;
  rows.reserve(mine.collectives.size());
  for (std::size_t i = 0; i < mine.collectives.size(); ++i) {
    const CollectiveRecord& record = mine.collectives[i];
    ensure(record.group.index() < group_position.size(), "the group of a collective is known");
    CollectiveRow& row = rows.emplace_back(CollectiveRow{record, mine.has_library ? mine.library[i] : LibraryRecord()});
    row.group = GroupId(group_position[record.group.index()]);
  }
  std::ranges::sort(rows, {}, &CollectiveRow::group);
  return rows;
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
  std::vector<CollectiveRow> records;
  world.agree([&] { records = renumbered(mine, group_position); });
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
    if (mine.has_library)
      create_columns(file, "/collectives", library_columns, num_rows, "collective", File::Layout::compressed);
  });
  auto consume = [&](std::uint64_t first, std::span<const CollectiveRow> block) {
    write_columns(output.file(), "/collectives", collective_columns, first, block);
    if (mine.has_library) write_columns(output.file(), "/collectives", library_columns, first, block);
  };
  gather_in_order<CollectiveRow>(
      world, records, rows, [](const CollectiveRow& c) { return c.group.index(); }, comes_before, consume);
}

std::vector<std::string> library_algorithms() {
  return {"none", "ring", "tree", "NVLS", "NVLSTree", "CollNet", "direct"};
}

}  // namespace orrery::results
