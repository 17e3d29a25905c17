#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "columns.hpp"
#include "hdf5_file.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/results/results.hpp"

/// What writing and reading the file share: its version, and the datasets of the tables that are read again.
namespace orrery::results::format {

constexpr const char* name = "orrery-results";
constexpr std::int64_t version = 1;

/// Each is defined in the file that writes the table.
extern const std::array<Column<npu::TimelineRecord>, 11> timeline_columns;
constexpr std::size_t first_timeline_columns = 7;  ///< those that files of older versions have, too
extern const std::array<Column<memory::UsageRecord>, 2> usage_columns;

/// One dataset of /kernel: a count or a wall-clock time.
struct KernelQuantity {
  const char* name;
  Label label;
  std::uint64_t KernelRecord::*count;
  double KernelRecord::*seconds;
};
extern const std::array<KernelQuantity, 15> kernel_quantities;

/// The tables of /load.
extern const std::array<Column<pdes::LoadEvents>, 3> load_events_columns;
extern const std::array<Column<pdes::LoadFlow>, 5> load_flow_columns;
extern const std::array<Column<pdes::LoadReply>, 4> load_reply_columns;

/// Returns the texts of a column of collective::Kind: index = kind.
std::vector<std::string> collective_kinds();

/// Returns "complete", "stuck" or "interrupted".
std::string_view status_name(Status status);

}  // namespace orrery::results::format
