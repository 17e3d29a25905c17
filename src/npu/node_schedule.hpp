#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/base/time.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/npu/program.hpp"
#include "orrery/trace/graph.hpp"
#include "progress.hpp"
#include "resources.hpp"

namespace orrery::npu {

/// Which nodes of an NPU's trace are ready and which one each resource takes next, over all iterations. Instant nodes
/// are done as soon as they are ready; functions that may make nodes ready call done(NodeId) for each of them.
class NodeSchedule {
 public:
  /// `iterations`: of this NPU. `released` is a list that is empty between calls; several schedules may share it.
  NodeSchedule(const Program& program, const Options& options, std::uint32_t iterations, ResourceMap resources,
               std::vector<std::uint32_t>& released)
      : program_(program),
        graph_(*program.graph),
        iterations_(iterations),
        recorded_iterations_(options.record_iterations),
        released_(released),
        resources_(options, resources) {}

  /// Starts the first iteration, or the next one: no node of it is done. O(bytes of the counts).
  void begin_iteration() { progress_.begin_iteration(program_); }
  /// Makes those nodes ready that depend on nothing; must follow. O(nodes that do).
  template <class Done>
  void make_first_ready(Time now, Done&& done) {
    for (const std::uint32_t i : program_.first_nodes) {
      if (is_instant(NodeId(i)))
        complete(NodeId(i), now, done);
      else
        resources_.add(NodeId(i), graph_, now);
    }
  }
  /// Counts a node as done, and makes those ready that waited for it only. Calls done(NodeId) for it too.
  /// O(successors).
  template <class Done>
  void complete(NodeId id, Time now, Done&& done) {
    for (NodeId next = id;; next = take_released()) {
      progress_.complete();
      done(next);
      for (const auto successor : graph_.successors_of(next)) {
        if (!progress_.count_down(program_, successor)) continue;
        if (is_instant(NodeId(successor)))
          released_.push_back(successor);
        else
          resources_.add(NodeId(successor), graph_, now);
      }
      if (released_.empty()) return;
    }
  }

  Resources& resources() { return resources_; }
  const Resources& resources() const { return resources_; }

  /// Returns whether all nodes are done of the iterations that have started, and there is a next one.
  bool may_begin_iteration() const { return progress_.is_at_end() && has_next_iteration(); }
  /// Returns whether all nodes of all iterations are done.
  bool is_done() const { return progress_.is_at_end() && !has_next_iteration(); }
  /// Returns which iteration this is, from 0. One must have started.
  std::uint32_t iteration() const { return progress_.iterations_started() - 1; }
  /// Returns whether the timeline and the records of collectives keep this iteration.
  bool is_recorded() const { return iteration() < recorded_iterations_; }
  /// Returns the number of nodes that are done, over all iterations.
  std::uint64_t completed() const { return progress_.completed(graph_); }
  void serialize(Archive& archive) { archive(resources_, progress_); }

 private:
  NodeId take_released() {
    const NodeId next(released_.back());
    released_.pop_back();
    return next;
  }
  bool is_instant(NodeId id) const { return graph_.nodes[id.index()].kind == trace::NodeKind::instant; }
  bool has_next_iteration() const { return progress_.iterations_started() < iterations_ && graph_.num_nodes() > 0; }

  const Program& program_;
  const trace::Graph& graph_;  // of the program: to find it there costs 15 instructions more for each event
  std::uint32_t iterations_, recorded_iterations_;
  std::vector<std::uint32_t>& released_;  // instant nodes that are ready and not done yet
  Resources resources_;
  Progress progress_;
};

}  // namespace orrery::npu
