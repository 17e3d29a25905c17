#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "orrery/base/countdowns.hpp"
#include "orrery/memory/lifetimes.hpp"
#include "orrery/memory/record.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::memory {

/// The first span of time in which the tensors of an NPU exceed its local memory.
struct Excess {
  Time since;
  NpuId npu;
  Bytes usage;
  Residents tensors = {};  ///< tensors in the memory in this span

  void serialize(Archive& archive) { archive(since, npu, usage, tensors); }
};

/// Counts the bytes of the tensors in the local memory of an NPU (docs/memory.md, Capacity). Usage is a step function
/// of time. What lasts no time does not count, so the order of what happens at one moment does not matter. Each time
/// that is given must be no earlier than the one before it.
class LocalMemory {
 public:
  /// `size`: the capacity of the memory; 0: no limit. Tensors and lifetimes must outlive it.
  LocalMemory(NpuId npu, const trace::Tensors& tensors, const Lifetimes& lifetimes, Bytes size);

  /// Begins an iteration: only the initial tensors are in the memory. With `is_recorded` the timeline records its
  /// usage.
  void begin_iteration(Time now, bool is_recorded);
  /// Ends the last iteration: the memory is empty.
  void end(Time now);
  /// Adds the tensors that a node lists. O(its tensors).
  void start(NodeId node, Time now);
  /// Removes the tensors that no other node needs. O(tensors of the node).
  void complete(NodeId node, Time now);
  /// Counts the usage up to `now`.
  void advance(Time now) {
    if (now > since_) close_moment(now);
  }

  Bytes peak() const { return peak_; }
  /// Returns the first time at which the peak is reached.
  Time peak_time() const { return peak_time_; }
  /// Returns the first excess; null if there has been none.
  const Excess* excess() const { return excess_.get(); }
  /// Returns the usage in the recorded iterations: one record for each time at which it changes; 0 at their end.
  const std::vector<UsageRecord>& timeline() const { return timeline_; }
  void serialize(Archive& archive);

 private:
  void close_moment(Time now);
  void keep(Time since, Bytes usage);

  NpuId npu_;
  const trace::Tensors& tensors_;
  const Lifetimes& lifetimes_;
  Bytes size_;
  Countdowns users_;           // [num_tensors] nodes that list it and have not completed
  std::vector<bool> is_here_;  // [num_tensors] in the memory
  Bytes usage_;
  Time since_;  // when the usage changed last
  Bytes peak_;
  Time peak_time_;
  std::unique_ptr<Excess> excess_;
  bool is_recorded_ = false;
  std::vector<UsageRecord> timeline_;
};

}  // namespace orrery::memory
