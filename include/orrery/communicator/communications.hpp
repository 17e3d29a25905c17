#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "orrery/base/ids.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/communicator/spec.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/topology/topology.hpp"
#include "orrery/trace/graph.hpp"

namespace orrery::communicator {

/// A group, the dimensions in which it takes part and the file that its collectives run: what makes a communicator.
struct Communication {
  trace::Group group;
  std::uint64_t dimensions = trace::all_dimensions;
  std::uint32_t custom = 0;

  friend auto operator<=>(const Communication&, const Communication&) = default;
};

/// What the dimensions that a node names mean in a system.
struct DimensionsInUse {
  std::uint64_t bits = 0;  ///< bit d: dimension d has more than one NPU
  /// Bit of each collective::Kind whose collectives are among all NPUs if they name the first dimension: see
  /// collective::Engine::kinds_of_all.
  std::uint32_t kinds_of_all = 0;
};
DimensionsInUse dimensions_in_use(const topology::Topology& topology, const collective::Engine& engine);

/// Returns whether the nodes of a group use all of its members, whatever dimensions they name: those of a group that a
/// trace or a file lists, also if it lists all NPUs.
inline bool ignores_dimensions(const trace::Group& group) { return !group.name.empty() || !group.members.empty(); }

/// Returns what the node of a group asks for. A node that names all dimensions in use names all dimensions.
GroupUse use_of(const trace::Graph& graph, NodeId node, const DimensionsInUse& in_use);

/// What the nodes of one NPU's trace ask for.
struct CommunicatorRequest {
  NpuId npu;
  std::span<const GroupId> groups;  ///< [group slots] of the trace: indices into the groups of the rank's traces
  std::span<const GroupUse> uses;   ///< distinct
};

/// The communicators of all ranks, and which of them the requests of this rank are.
struct NumberedCommunicators {
  std::vector<Communication> all;                ///< the same on all ranks: by name, members, dimensions and file
  std::vector<std::vector<GroupId>> of_request;  ///< [requests][uses] index into `all`
};

/// Numbers the communicators that the NPUs of all ranks ask for. `groups` are the groups of this rank's traces. A group
/// that lists its members takes part in all dimensions, whatever its nodes name; the world takes part in the dimensions
/// that its nodes name, as one sub-grid for each coordinate in the others. Collective. Cost O(uses * dimensions) on
/// each rank and O(members) for each communicator.
NumberedCommunicators number_communicators(std::span<const CommunicatorRequest> requests,
                                           const std::vector<trace::Group>& groups, const topology::Topology& topology,
                                           const collective::Engine& engine, parallel::Communicator& world);

/// The process groups of a run and its communicators, in order of GroupId.
class CommunicatorTable {
 public:
  /// `options` has the files that communicators run in place of algorithms. Communicators are spread over the ranks of
  /// their members; which rank hosts one does not matter to any result. Cost O(communicators).
  CommunicatorTable(std::vector<Communication> communicators, const collective::Options& options,
                    std::span<const Rank> host_of_npu);
  CommunicatorTable(CommunicatorTable&&) = default;
  CommunicatorTable& operator=(CommunicatorTable&&) = default;

  const std::vector<trace::Group>& groups() const { return groups_; }
  std::span<const CommunicatorSpec> specs() const { return specs_; }

 private:
  std::vector<trace::Group> groups_;
  std::vector<CommunicatorSpec> specs_;  // point into groups_
};

/// Returns the NPU whose rank hosts a communicator that is not folded.
NpuId host_npu(const CommunicatorSpec& spec, std::uint32_t num_npus);

}  // namespace orrery::communicator
