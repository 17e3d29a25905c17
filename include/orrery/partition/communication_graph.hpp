#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/communications.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/topology/topology.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::partition {

struct Traffic {
  std::uint64_t bytes = 0;
  std::uint64_t count = 0;  ///< messages, or nodes of a group
};

/// What the nodes of one structure send and do in groups, by the slots of an NPU's own tables. NPUs of one structure
/// share it.
struct TraceSummary {
  std::uint64_t nodes = 0;
  std::vector<Traffic> to_peer;              ///< [peer slots] sends
  std::vector<communicator::GroupUse> uses;  ///< distinct, by first occurrence
  std::vector<Traffic> in_use;               ///< [uses] collectives, and accesses to memory that a group makes together
};

/// Summarises one structure. `dimensions_in_use`: as communicator::dimensions_in_use. Cost O(nodes * distinct uses).
TraceSummary summarise(const trace::Graph& graph, const communicator::DimensionsInUse& dimensions_in_use);

/// All messages from one NPU to another.
struct Flow {
  std::uint32_t from = 0, to = 0;
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
};

/// All collectives of one communicator.
struct GroupTraffic {
  std::vector<NpuId> members;     ///< members; for the world all NPUs are listed
  std::uint64_t bytes = 0;        ///< bytes that all members contribute, over all collectives
  std::uint64_t collectives = 0;  ///< nodes of all members
};

/// How much work the NPUs have and how much they communicate with each other: the graph that METIS cuts.
struct CommunicationGraph {
  std::vector<std::uint64_t> loads;  ///< [num_npus] nodes of the trace
  std::vector<Flow> flows;           ///< flows by sender, then receiver, each pair once
  std::vector<GroupTraffic> groups;  ///< traffic by communicator, as communicator::number_communicators numbers them
};

/// The traces that one rank has read.
struct ReadTraces {
  std::span<const NpuId> npus;
  std::span<const trace::NpuTrace> traces;  ///< [npus]
  const std::vector<trace::Group>& groups;  ///< groups that NpuTrace::groups indexes
};

/// Gathers the graph of the traces of all ranks. Every NPU is in the traces of one rank. Without `communicates`, as in
/// a replay, the graph has loads only. Collective; the result is whole on every rank. Cost as `summarise` for each
/// structure, O(peers + uses) for each NPU and O(members) for each communicator.
CommunicationGraph communication_graph(const ReadTraces& mine, const topology::Topology& topology,
                                       const collective::Engine& engine, bool communicates,
                                       parallel::Communicator& world);

}  // namespace orrery::partition
