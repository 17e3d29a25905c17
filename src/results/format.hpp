#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hdf5_file.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/record.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/results/results.hpp"

/// The names, units and meanings of docs/results.md, as tables.
namespace orrery::results::format {

constexpr const char* name = "orrery-results";
constexpr std::int64_t version = 1;

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
extern const std::array<Column<npu::NpuRecord>, 14> npu_columns;
extern const std::array<Column<communicator::CollectiveRecord>, 10> collective_columns;
extern const std::array<Column<npu::TimelineRecord>, 7> timeline_columns;
extern const std::array<Column<memory::UsageRecord>, 2> usage_columns;

/// The texts of a column of collective::Kind.
std::vector<std::string> collective_kinds();

/// One dataset of /kernel: a count or a wall-clock time.
struct KernelQuantity {
  const char* name;
  Label label;
  std::uint64_t KernelRecord::*count;
  double KernelRecord::*seconds;
};
extern const std::array<KernelQuantity, 12> kernel_quantities;

/// "complete", "stuck", "interrupted".
std::string_view status_name(Status status);

/// Bytes that collectives work on as nccl-tests counts them, where their `comm_size` is `bytes` in all: the whole
/// buffer (of all-gather and gather: members * shard).
unsigned __int128 worked_bytes(collective::Kind kind, std::uint32_t members, unsigned __int128 bytes);

/// These bytes over the time from the last arrival to the finish. NaN where that time is zero. In bytes per second.
double algorithm_bandwidth(const communicator::CollectiveRecord& collective);

/// What the algorithm bandwidth is multiplied by so that it can be compared with the bandwidth of a link whatever the
/// number of members n: 2(n-1)/n all-reduce; (n-1)/n all-gather, reduce-scatter, all-to-all, gather, scatter; 1
/// broadcast, reduce. Source: nccl-tests, doc/PERFORMANCE.md; of gather and scatter its src/gather.cu and scatter.cu.
double bus_factor(collective::Kind kind, std::uint32_t members);

}  // namespace orrery::results::format
