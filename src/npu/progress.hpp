#pragma once

#include <cstdint>

#include "orrery/base/countdowns.hpp"
#include "orrery/npu/program.hpp"

namespace orrery::npu {

/// How far an NPU has got with its trace, which it may execute several times.
class Progress {
 public:
  /// Starts the first iteration, or the next one: no node of it is done. O(bytes of the counts).
  void begin_iteration(const Program& program) {
    ++started_;
    left_ = program.graph->num_nodes();
    missing_.restart(program.dependencies);
  }

  void serialize(Archive& archive) { archive(missing_, left_, started_); }

  /// Counts a node as done.
  void complete() { --left_; }
  /// Counts one dependency of a node as done. Returns whether that was the last one.
  bool count_down(const Program& program, std::uint32_t node) {
    return missing_.count_down(program.dependencies, node);
  }

  std::uint32_t iterations_started() const { return started_; }
  /// Returns whether all nodes are done of the iterations that have started.
  bool is_at_end() const { return left_ == 0; }
  /// Returns the number of nodes that are done, over all iterations.
  std::uint64_t completed(const trace::Graph& graph) const {
    return std::uint64_t{started_} * graph.num_nodes() - left_;
  }

 private:
  Countdowns missing_;         // [num_nodes] dependencies
  std::uint32_t left_ = 0;     // nodes of this iteration that are not done
  std::uint32_t started_ = 0;  // iterations
};

}  // namespace orrery::npu
