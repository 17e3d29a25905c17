#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "orrery/base/countdowns.hpp"
#include "orrery/communicator/communications.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/compute/model.hpp"
#include "orrery/memory/lifetimes.hpp"
#include "orrery/npu/options.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::npu {

/// What the NPUs of one structure have in common: the graph, and what follows from it and the options. Immutable.
struct Program {
  std::shared_ptr<const trace::Graph> graph;
  std::vector<Time> durations;               ///< [num_nodes] of compute and CPU nodes; of all nodes with replay_only
  std::vector<communicator::GroupUse> uses;  ///< distinct uses of groups, by first occurrence
  std::vector<std::uint32_t> use_of;         ///< [num_nodes] index into uses; empty if it is the group slot
  memory::Lifetimes lifetimes;
  CountdownPlan dependencies;              ///< [num_nodes] where NPUs count those that are not done
  std::vector<std::uint32_t> first_nodes;  ///< NodeId values of those without dependencies
  std::uint64_t num_unknown_compute = 0;   ///< compute nodes that the model gives no time though one was recorded

  /// Returns an index into `uses`, of a node of a group.
  std::uint32_t use_of_node(NodeId node) const {
    return use_of.empty() ? graph->nodes[node.index()].slot : use_of[node.index()];
  }
};

/// Returns the time of a compute or CPU node, and with replay_only that of any node; else 0. `model` is that of the
/// options.
Time duration_of(const trace::Graph& graph, NodeId id, const Options& options, const compute::ComputeModel& model);

/// Returns the program of a graph. `dimensions_in_use`: of the system. O(nodes + dependencies + tensors listed).
Program make_program(std::shared_ptr<const trace::Graph> graph, const Options& options,
                     const communicator::DimensionsInUse& dimensions_in_use);

/// The programs of a rank's traces, by structure.
using Programs = std::map<const trace::Graph*, std::unique_ptr<const Program>>;

/// Makes one program for each structure of the traces. Cost as make_program for each structure.
Programs make_programs(std::span<const trace::NpuTrace> traces, const Options& options,
                       const communicator::DimensionsInUse& dimensions_in_use);

}  // namespace orrery::npu
