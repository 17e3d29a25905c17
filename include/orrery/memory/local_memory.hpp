#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/base/countdowns.hpp"
#include "orrery/memory/lifetimes.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::memory {

/// The first moment of some length at which the tensors of an NPU exceed its local memory.
struct Excess {
  Time since;
  NpuId npu;
  Bytes usage;
  Residents tensors = {};  ///< that are there then
};

/// The tensors in the local memory of an NPU (docs/memory.md, Capacity). Usage is a step function of time, in which
/// what lasts no time does not count: the order of what happens at one moment does not matter. Times must not descend.
class LocalMemory {
 public:
  /// `size`: what it has room for; 0: for anything. Tensors and lifetimes outlive it.
  LocalMemory(NpuId npu, const trace::Tensors& tensors, const Lifetimes& lifetimes, Bytes size);

  /// What was there leaves. With `is_recorded` the usage is kept until the next one begins, or the last one ends.
  void begin_iteration(Time now, bool is_recorded);
  void end(Time now);
  void start(NodeId node, Time now);
  void complete(NodeId node, Time now);
  /// Counts up to `now`.
  void advance(Time now) {
    if (now > since_) close_moment(now);
  }

  Bytes peak() const { return peak_; }
  Time peak_time() const { return peak_time_; }  ///< the first time that it is reached
  const std::optional<Excess>& excess() const { return excess_; }
  /// Of the recorded iterations: the usage from each time on at which it changes; 0 at their end.
  const std::vector<UsageRecord>& timeline() const { return timeline_; }

 private:
  void close_moment(Time now);
  void keep(Time since, Bytes usage);

  NpuId npu_;
  const trace::Tensors& tensors_;
  const Lifetimes& lifetimes_;
  Bytes size_;
  Countdowns users_;           // [num_tensors] nodes that list it and have not completed
  std::vector<bool> is_here_;  // [num_tensors]
  Bytes usage_;
  Time since_;  // the last change
  Bytes peak_;
  Time peak_time_;
  std::optional<Excess> excess_;
  bool is_recorded_ = false;
  std::vector<UsageRecord> timeline_;
};

}  // namespace orrery::memory
