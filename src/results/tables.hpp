#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "format.hpp"
#include "hdf5_file.hpp"
#include "orrery/base/error.hpp"
#include "orrery/parallel/communicator.hpp"

/// What tables of the file have in common: columns as in format.hpp, and rows that NPUs have several of.
namespace orrery::results {

/// A column computed from records.
template <class T, class Record, class Value>
std::vector<T> column_of(std::span<const Record> records, Value value) {
  std::vector<T> column(records.size());
  std::transform(records.begin(), records.end(), column.begin(), value);
  return column;
}

/// The empty datasets of a table, with rows as `scale` has them.
template <class Columns>
void create_columns(File& file, const std::string& group, const Columns& columns, std::uint64_t num_rows,
                    const char* scale, File::Layout layout) {
  for (const auto& column : columns) {
    const std::string path = group + "/" + column.name;
    std::visit(
        [&]<class T, class Record>(T (*)(const Record&)) { file.create<T>(path, num_rows, column.label, layout); },
        column.value);
    file.attach(path, group + "/" + scale);
    if (column.values) file.attribute(path, "values", column.values());
  }
}

/// Rows from `first` on.
template <class Columns, class Record>
void write_columns(File& file, const std::string& group, const Columns& columns, std::uint64_t first,
                   std::span<const Record> records) {
  for (const auto& column : columns)
    std::visit([&]<class T>(T (*value)(
                   const Record&)) { file.write<T>(group + "/" + column.name, first, column_of<T>(records, value)); },
               column.value);
}

/// [num_npus] how many records of each NPU there are over all ranks; empty if there are none. Collective.
template <class Record>
std::vector<std::int64_t> rows_of_npus(std::span<const Record> mine, std::uint32_t num_npus,
                                       parallel::Communicator& world) {
  std::vector<std::int64_t> rows(num_npus, 0);
  world.agree([&] {
    for (const Record& record : mine) {
      ensure(record.npu.value() < num_npus, "a record is of an NPU of the run");
      ++rows[record.npu.index()];
    }
  });
  world.sum(rows);
  if (std::ranges::none_of(rows, [](std::int64_t count) { return count > 0; })) rows.clear();
  return rows;
}

/// `offsets` and the scales `bound` and `row` of a table in which NPU i has rows[i] rows. Returns how many there are.
std::uint64_t create_offsets(File& file, const std::string& group, std::span<const std::int64_t> rows);

}  // namespace orrery::results
