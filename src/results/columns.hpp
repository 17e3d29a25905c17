#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "hdf5_file.hpp"
#include "orrery/base/error.hpp"
#include "orrery/parallel/communicator.hpp"

/// What tables of the file have in common: columns that are made of records, and rows of which NPUs have several.
namespace orrery::results {

/// One dataset of a table: what it says of itself, and its value of a record.
template <class Record>
struct Column {
  template <class T>
  using Value = T (*)(const Record&);

  const char* name;
  Label label;
  std::variant<Value<std::int8_t>, Value<std::int32_t>, Value<std::uint32_t>, Value<std::int64_t>, Value<std::uint64_t>,
               Value<double>>
      value;
  /// The texts that the numbers stand for, if any: index = number.
  std::vector<std::string> (*values)() = nullptr;
};

/// Returns the values of one column.
template <class T, class Record, class Value>
std::vector<T> column_of(std::span<const Record> records, Value value) {
  std::vector<T> column(records.size());
  std::transform(records.begin(), records.end(), column.begin(), value);
  return column;
}

/// Creates the empty datasets of a table, whose rows are those of `scale`.
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

/// Writes rows from `first` on.
template <class Columns, class Record>
void write_columns(File& file, const std::string& group, const Columns& columns, std::uint64_t first,
                   std::span<const Record> records) {
  for (const auto& column : columns)
    std::visit([&]<class T>(T (*value)(
                   const Record&)) { file.write<T>(group + "/" + column.name, first, column_of<T>(records, value)); },
               column.value);
}

/// Creates and writes a table of records that rank 0 has all of. The scale of its rows is made too.
template <class Columns, class Record>
void write_table(File& file, const std::string& group, const Columns& columns, const char* scale, const Label& label,
                 std::span<const Record> records) {
  file.scale(group + "/" + scale, records.size(), label);
  create_columns(file, group, columns, records.size(), scale, File::Layout::plain);
  write_columns(file, group, columns, 0, records);
}

/// Returns how many records of each NPU there are over all ranks: [num_npus]; empty if there are none. Collective.
template <class Record>
std::vector<std::int64_t> rows_of_npus(std::span<const Record> mine, std::uint32_t num_npus,
                                       parallel::Communicator& world) {
  std::int64_t any = mine.empty() ? 0 : 1;
  world.maximum(std::span(&any, 1));
  if (any == 0) return {};
  std::vector<std::int64_t> rows(num_npus, 0);
  world.agree([&] {
    for (const Record& record : mine) {
      ensure(record.npu.value() < num_npus, "a record is of an NPU of the run");
      ++rows[record.npu.index()];
    }
  });
  world.sum(rows);
  return rows;
}

/// Writes `offsets` and the scales `bound` and `row` of a table in which NPU i has rows[i] rows. Returns the number of
/// rows.
std::uint64_t create_offsets(File& file, const std::string& group, std::span<const std::int64_t> rows);

}  // namespace orrery::results
