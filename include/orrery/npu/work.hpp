#pragma once

#include <array>
#include <bit>
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
  void begin(Work work) {
    ++counts_[static_cast<std::size_t>(work)];
    busy_ |= bit(work);
  }
  void end(Work work) {
    if (--counts_[static_cast<std::size_t>(work)] == 0) busy_ &= ~bit(work);
  }

  /// Returns the number of collectives, sends and receives.
  std::uint32_t communicating() const {
    return counts_[static_cast<std::size_t>(Work::communication)] + counts_[static_cast<std::size_t>(Work::receive)];
  }
  /// Returns whether nodes of this work are in service.
  bool has(Work work) const { return (busy_ & bit(work)) != 0; }
  /// Returns what the moment counts for.
  Work counts_for() const { return static_cast<Work>(std::countr_zero(busy_ | bit(Work::idle))); }

 private:
  static constexpr std::uint32_t bit(Work work) { return 1U << static_cast<std::uint32_t>(work); }

  std::array<std::uint32_t, num_busy_works> counts_{};
  std::uint32_t busy_ = 0;  // a bit for each work with a count
};

}  // namespace orrery::npu
