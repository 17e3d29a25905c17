#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/pdes/event.hpp"
#include "orrery/pdes/scheduler.hpp"

namespace orrery::npu {

/// The ends of collectives that NPUs of a rank handle without the kernel, which does not see them yet: they became
/// known while an NPU settles, and their own NPUs await nothing else.
class KeptCompletions {
 public:
  struct Kept {
    pdes::Event end;
    std::uint32_t npu = 0;  ///< index of the NPU on this rank
  };

  /// Whether ends are kept; otherwise they go to the kernel.
  bool is_on = false;

  explicit KeptCompletions(std::size_t num_npus) : is_kept_(num_npus) {}

  bool empty() const { return next_ == ends_.size(); }
  /// Returns whether the end of a collective of this NPU is kept.
  bool holds(std::uint32_t npu) const { return is_kept_[npu] != 0; }
  /// Keeps the end of a collective. Returns false if there are too many, or already one of its NPU.
  bool add(std::uint32_t npu, const pdes::Event& end) {
    if (ends_.size() - next_ >= most || holds(npu)) return false;
    is_kept_[npu] = 1;
    ends_.push_back({end, npu});
    return true;
  }
  /// Forgets the end that has been kept for longest, and returns it. There must be one.
  Kept take() {
    const Kept kept = ends_[next_++];
    is_kept_[kept.npu] = 0;
    if (empty()) {
      ends_.clear();
      next_ = 0;
    }
    return kept;
  }
  /// Schedules all ends that are kept.
  void give_up(pdes::Scheduler& kernel) {
    while (!empty()) kernel.schedule(take().end);
  }

 private:
  static constexpr std::size_t most = 64;

  std::vector<Kept> ends_;
  std::size_t next_ = 0;       // index of the first end that is kept
  std::vector<char> is_kept_;  // [NPUs of this rank]
};

}  // namespace orrery::npu
