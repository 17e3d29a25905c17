#pragma once

#include <array>
#include <cstdint>

#include "orrery/base/time.hpp"
#include "orrery/executor/record.hpp"

namespace orrery::executor {

/// What an NPU is busy with, in the order in which a moment with several counts. `communication`: collectives and
/// sends.
enum class Work : std::uint8_t { compute = 0, cpu = 1, communication = 2, receive = 3, memory = 4 };

constexpr Work work_of(trace::NodeKind kind) {
  switch (kind) {
    case trace::NodeKind::cpu:
      return Work::cpu;
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

/// Splits an NPU's time by what it is busy with. compute + cpu + exposed communication + exposed memory + idle = the
/// time of the last change.
class Activity {
 public:
  void begin(Work work, Time now) {
    advance(now);
    ++active_[index(work)];
  }
  void end(Work work, Time now) {
    advance(now);
    --active_[index(work)];
  }
  void fill(NpuRecord& record) const {
    record.compute = exposed_[0];
    record.cpu = exposed_[1];
    record.exposed_communication = exposed_[2] + exposed_[3];
    record.exposed_receive = exposed_[3];
    record.exposed_memory = exposed_[4];
    record.communication = total_communication_;
    record.memory = total_memory_;
    record.idle = idle_;
  }
  /// Counts up to `now`.
  void advance(Time now) {
    const Time elapsed = now - last_;
    if (elapsed == Time::zero()) return;
    last_ = now;
    if (active_[index(Work::communication)] + active_[index(Work::receive)] > 0) total_communication_ += elapsed;
    if (active_[index(Work::memory)] > 0) total_memory_ += elapsed;
    for (std::size_t work = 0; work < active_.size(); ++work)
      if (active_[work] > 0) {
        exposed_[work] += elapsed;
        return;
      }
    idle_ += elapsed;
  }

 private:
  static std::size_t index(Work work) { return static_cast<std::size_t>(work); }

  std::array<std::uint32_t, 5> active_{};
  Time last_;
  std::array<Time, 5> exposed_{};
  Time total_communication_, total_memory_, idle_;
};

}  // namespace orrery::executor
