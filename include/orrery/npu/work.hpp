#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "orrery/trace/graph.hpp"

namespace orrery::npu {

/// What an NPU is busy with. A moment with several of them counts for the first in this order. `idle` stands for
/// nothing, `communication` for collectives and sends, `host` for the work of a CPU that launches what the others are.
enum class Work : std::uint8_t { compute, cpu, communication, receive, memory, host, idle };
constexpr std::size_t num_busy_works = static_cast<std::size_t>(Work::idle);

constexpr Work work_of(trace::NodeKind kind) {
  switch (kind) {
    case trace::NodeKind::cpu:
      return Work::cpu;
    case trace::NodeKind::host:
      return Work::host;
    case trace::NodeKind::compute:
      return Work::compute;
    case trace::NodeKind::mem_load:
    case trace::NodeKind::mem_store:
      return Work::memory;
    case trace::NodeKind::receive:
      return Work::receive;
    default:
      return Work::communication;
  }
}

/// The nodes of an NPU that are in service at a moment.
class InService {
 public:
  void begin(Work work) { ++counts_[static_cast<std::size_t>(work)]; }
  void end(Work work) { --counts_[static_cast<std::size_t>(work)]; }

  std::uint32_t operator[](Work work) const { return counts_[static_cast<std::size_t>(work)]; }
  /// Returns the number of collectives, sends and receives.
  std::uint32_t communicating() const { return (*this)[Work::communication] + (*this)[Work::receive]; }
  /// Returns what the moment counts for.
  Work counts_for() const {
    const auto busy = std::find_if(counts_.begin(), counts_.end(), [](std::uint32_t count) { return count > 0; });
    return static_cast<Work>(busy - counts_.begin());
  }

 private:
  std::array<std::uint32_t, num_busy_works> counts_{};
};

}  // namespace orrery::npu
