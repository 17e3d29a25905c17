#pragma once

#include <cstdint>

namespace orrery::workload {

/// How an embedding table is divided among NPUs.
enum class TableSharding : std::uint8_t {
  even,    ///< each NPU has an equal share of memory and work, which no real division reaches
  table,   ///< one NPU has the table
  row,     ///< each NPU has an equal share of the rows
  column,  ///< parts of some columns each, which NPUs have as if they were tables
};
/// What NPUs that have whole tables, or columns of them, have as evenly as possible.
enum class TableBalance : std::uint8_t { bytes, lookups };

/// How the embedding tables of a model are divided among NPUs.
struct TableDivision {
  TableSharding sharding = TableSharding::even;  ///< division of tables that have none of their own
  TableBalance balance = TableBalance::bytes;
  std::uint64_t columns = 32;  ///< columns of a part of a table that is divided by columns

  friend bool operator==(const TableDivision&, const TableDivision&) = default;
};

}  // namespace orrery::workload
