#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "orrery/base/time.hpp"
#include "orrery/npu/cause.hpp"
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
  /// Says that communication which has come to its end was what the NPU waited for since the last such end, as far as
  /// it was exposed. `there` is when the others were ready: until then the NPU waited for them.
  void explain(Cause cause, Time there) {
    if (unexplained_ == Time::zero()) return;
    const Time waited = std::clamp(there - unexplained_since_, Time::zero(), unexplained_);
    waits_[static_cast<std::size_t>(waiting_for(cause))] += waited;
    waits_[static_cast<std::size_t>(cause)] += unexplained_ - waited;
    unexplained_ = Time::zero();
  }
  /// Sets the times of a record but for its finish.
  void fill(NpuRecord& record) const {
    record.compute = spent(Work::compute);
    record.cpu = spent(Work::cpu) + spent(Work::host);
    record.exposed_receive = spent(Work::receive);
    record.exposed_memory = spent(Work::memory);
    record.communication = total_communication_;
    record.memory = total_memory_;
    record.idle = spent(Work::idle);
    record.waits = waits_;
    record.waits[static_cast<std::size_t>(Cause::other)] += unexplained_;  // of a run that ended early
  }
  /// Returns the time up to which it has counted.
  Time counted_to() const { return last_; }
  /// Counts up to `now`.
  void advance(Time now) {
    const Time elapsed = now - last_;
    if (elapsed == Time::zero()) return;
    if (in_service_.communicating() > 0) total_communication_ += elapsed;
    if (in_service_.has(Work::memory)) total_memory_ += elapsed;
    const Work work = in_service_.counts_for();
    spent_[static_cast<std::size_t>(work)] += elapsed;
    if (work == Work::communication || work == Work::receive) {
      if (unexplained_ == Time::zero()) unexplained_since_ = last_;
      unexplained_ += elapsed;
    }
    last_ = now;
  }

 private:
  Time spent(Work work) const { return spent_[static_cast<std::size_t>(work)]; }

  InService in_service_;
  Time last_;
  std::array<Time, num_busy_works + 1> spent_{};
  Time total_communication_, total_memory_;
  std::array<Time, num_causes> waits_{};  // exposed communication
  Time unexplained_, unexplained_since_;  // exposed communication of which it is not known yet what it waits for
};

}  // namespace orrery::npu
