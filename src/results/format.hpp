#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hdf5_file.hpp"
#include "orrery/results/results.hpp"

/// The names, units and meanings of docs/results.md, as tables.
namespace orrery::results::format {

constexpr const char* name = "orrery-results";
constexpr std::int64_t version = 1;

/// One dataset of /npus.
struct NpuQuantity {
  const char* name;
  Label label;
  std::int64_t (*value)(const executor::NpuRecord&);
};
extern const std::array<NpuQuantity, 11> npu_quantities;

/// One dataset of /kernel: a count or a wall-clock time.
struct KernelQuantity {
  const char* name;
  Label label;
  std::uint64_t KernelRecord::*count;
  double KernelRecord::*seconds;
};
extern const std::array<KernelQuantity, 12> kernel_quantities;

/// `values` of /collectives/kind: index = number in the column.
std::vector<std::string> collective_kinds();
/// `values` of /timeline/kind.
std::vector<std::string> node_kinds();

/// Bytes that a collective works on over the time from the last arrival to its finish, as nccl-tests counts them: the
/// whole buffer (of all-gather: members * shard). NaN where that time is zero. In bytes per second.
double algorithm_bandwidth(const executor::CollectiveRecord& collective);

/// What the algorithm bandwidth is multiplied by so that it can be compared with the bandwidth of a link whatever the
/// number of members n: 2(n-1)/n all-reduce; (n-1)/n all-gather, reduce-scatter, all-to-all, gather, scatter; 1
/// broadcast, reduce. Source: nccl-tests, doc/PERFORMANCE.md.
double bus_factor(const executor::CollectiveRecord& collective);

}  // namespace orrery::results::format
