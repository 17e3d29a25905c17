#pragma once

#include <array>
#include <cstdint>

#include "orrery/base/time.hpp"
#include "orrery/npu/record.hpp"
#include "orrery/npu/work.hpp"

namespace orrery::npu {

/// Splits an NPU's time by what it is busy with: compute + cpu + exposed communication + exposed memory + idle = the
/// time of the last change.
class Activity {
 public:
  void begin(Work work, Time now) {
    advance(now);
    in_service_.begin(work);
  }
  void end(Work work, Time now) {
    advance(now);
    in_service_.end(work);
  }
  /// Sets the times of a record but for its finish.
  void fill(NpuRecord& record) const {
    record.compute = spent(Work::compute);
    record.cpu = spent(Work::cpu);
    record.exposed_communication = spent(Work::communication) + spent(Work::receive);
    record.exposed_receive = spent(Work::receive);
    record.exposed_memory = spent(Work::memory);
    record.communication = total_communication_;
    record.memory = total_memory_;
    record.idle = spent(Work::idle);
  }
  /// Counts up to `now`.
  void advance(Time now) {
    const Time elapsed = now - last_;
    if (elapsed == Time::zero()) return;
    last_ = now;
    if (in_service_.communicating() > 0) total_communication_ += elapsed;
    if (in_service_[Work::memory] > 0) total_memory_ += elapsed;
    spent_[static_cast<std::size_t>(in_service_.counts_for())] += elapsed;
  }

 private:
  Time spent(Work work) const { return spent_[static_cast<std::size_t>(work)]; }

  InService in_service_;
  Time last_;
  std::array<Time, num_busy_works + 1> spent_{};
  Time total_communication_, total_memory_;
};

}  // namespace orrery::npu
