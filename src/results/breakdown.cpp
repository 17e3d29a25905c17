#include "orrery/results/breakdown.hpp"

#include <algorithm>

namespace orrery::results {
namespace {

struct Part {
  std::string_view name, text;
};

constexpr std::array<Part, num_breakdown_parts> parts{{
    {"compute", "the compute resource is busy"},
    {"cpu", "the CPU is busy and the compute resource is not"},
    {"tensor", "exposed collectives of tensor parallelism"},
    {"sequence", "exposed all-gathers and reduce-scatters of tensor groups (sequence parallelism)"},
    {"context", "exposed collectives of context parallelism"},
    {"expert", "exposed collectives of expert parallelism"},
    {"data", "exposed collectives of data parallelism"},
    {"pipeline", "exposed time of messages under way between sender and receiver"},
    {"bubble", "a receive waits, and its sender has not sent yet"},
    {"stragglers", "a collective waits for a member that has not joined yet"},
    {"other", "exposed collectives of groups whose names say no kind of parallelism"},
    {"memory", "only remote memory accesses are in progress"},
    {"idle", "nothing is in progress, or the NPU has ended before the last one"},
}};

}  // namespace

static_assert(parts[first_cause_part + static_cast<std::size_t>(npu::Cause::other)].name == "other");

std::string_view breakdown_name(std::size_t part) { return parts.at(part).name; }

std::string_view breakdown_text(std::size_t part) { return parts.at(part).text; }

Breakdown breakdown_of(const npu::NpuRecord& npu, Time end) {
  Breakdown breakdown;
  breakdown[0] = npu.compute;
  breakdown[1] = npu.cpu;
  std::ranges::copy(npu.waits, breakdown.begin() + first_cause_part);
  breakdown[memory_part] = npu.exposed_memory;
  breakdown[idle_part] = npu.idle + (end - npu.finish);
  return breakdown;
}

BreakdownOf<double> mean_breakdown(const NpuRecords& npus, Time end) {
  BreakdownOf<__int128> sums{};
  npus.for_each([&](const npu::NpuRecord& npu, std::uint64_t count) {
    const Breakdown of_npu = breakdown_of(npu, end);
    for (std::size_t part = 0; part < sums.size(); ++part)
      sums[part] += static_cast<__int128>(of_npu[part].ps()) * static_cast<__int128>(count);
  });
  BreakdownOf<double> shares{};
  const auto whole = static_cast<double>(static_cast<__int128>(npus.size()) * end.ps());
  std::ranges::transform(sums, shares.begin(), [whole](__int128 sum) { return static_cast<double>(sum) / whole; });
  return shares;
}

}  // namespace orrery::results
