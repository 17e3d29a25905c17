#include "columns.hpp"
#include "format.hpp"
#include "gather.hpp"
#include "tables.hpp"

namespace orrery::results {

using memory::UsageRecord;

namespace format {

const std::array<Column<UsageRecord>, 2> usage_columns{{
    {"time", {"ps", "time", "time from which on the usage holds"}, [](const UsageRecord& r) { return r.since.ps(); }},
    {"usage",
     {"byte", "usage", "size of the tensors in the local memory; 0 at the end"},
     [](const UsageRecord& r) { return static_cast<std::int64_t>(r.usage.count()); }},
}};

}  // namespace format

void write_local_memory(Output& output, const RunDescription& run, std::span<const UsageRecord> mine) {
  const auto rows = rows_of_npus(mine, run.num_npus, output.world());
  if (rows.empty()) return;
  output.on_root([&](File& file) {
    file.group("/local_memory",
               "one row per change of the size of the tensors in the local memory of an NPU: NPU i has the rows "
               "offsets[i] to offsets[i + 1] - 1, by time");
    const std::uint64_t total = create_offsets(file, "/local_memory", rows);
    create_columns(file, "/local_memory", format::usage_columns, total, "row", File::Layout::compressed);
  });
  auto consume = [&](std::uint64_t first, std::span<const UsageRecord> block) {
    write_columns(output.file(), "/local_memory", format::usage_columns, first, block);
  };
  gather_in_order<UsageRecord>(
      output.world(), mine, rows, [](const UsageRecord& r) { return r.npu.index(); },
      [](const UsageRecord&, const UsageRecord&) { return false; }, consume);
}

}  // namespace orrery::results
