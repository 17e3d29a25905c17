#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "orrery/npu/work.hpp"

namespace orrery::show {

/// What an NPU's time counts for, as in /npus of the results.
enum class NpuState : std::uint8_t { compute, cpu, exposed_communication, exposed_memory, idle };
constexpr std::size_t num_states = 5;
constexpr std::array<std::string_view, num_states> state_names = {"compute", "CPU", "exposed communication",
                                                                  "exposed memory", "idle"};
constexpr std::size_t num_busy = 4;

inline NpuState state_of(npu::Work work) {
  constexpr NpuState states[] = {NpuState::compute,
                                 NpuState::cpu,
                                 NpuState::exposed_communication,
                                 NpuState::exposed_communication,
                                 NpuState::exposed_memory,
                                 NpuState::cpu,
                                 NpuState::idle};
  return states[static_cast<std::size_t>(work)];
}

constexpr std::size_t num_bins = 1000;

/// Sums the time that all NPUs spend in each state, and communicate, in each of `num_bins` equal intervals.
class TimeBins {
 public:
  explicit TimeBins(std::int64_t end) : end_(end), spent_(num_bins) {}

  /// Adds the time from `from` to `to` in a state (or `communication`), `times` times.
  void add(std::size_t column, std::int64_t from, std::int64_t to, int times = 1) {
    if (to <= from || times == 0) return;
    for (std::size_t bin = bin_of(from); bin < num_bins && edge(bin) < to; ++bin)
      spent_[bin][column] += times * (std::min(to, edge(bin + 1)) - std::max(from, edge(bin)));
  }

  static constexpr std::size_t communication = num_states;

  /// Returns where a bin begins, in ps.
  std::int64_t edge(std::size_t bin) const {
    return static_cast<std::int64_t>(static_cast<__int128>(end_) * bin / num_bins);
  }
  /// Returns the mean number over the bin of NPUs in the state, or of nodes that communicate.
  double mean(std::size_t bin, std::size_t column) const {
    const auto width = static_cast<double>(edge(bin + 1) - edge(bin));
    return width > 0 ? static_cast<double>(spent_[bin][column]) / width : 0;
  }

 private:
  std::size_t bin_of(std::int64_t at) const {
    auto bin = static_cast<std::size_t>(static_cast<__int128>(at) * num_bins / end_);
    while (bin + 1 < num_bins && edge(bin + 1) <= at) ++bin;
    return bin;
  }

  std::int64_t end_;
  std::vector<std::array<std::int64_t, num_states + 1>> spent_;
};

}  // namespace orrery::show
