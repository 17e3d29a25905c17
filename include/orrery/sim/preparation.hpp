#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "orrery/base/error.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/device/remote_memory.hpp"
#include "orrery/executor/executor.hpp"
#include "orrery/executor/program.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/topology/partition.hpp"
#include "orrery/topology/topology.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::sim {

/// Everything that stands before the run: the traces of this rank's NPUs, read and checked, and what the ranks have
/// agreed on. It outlives the executor, which borrows from it. Every function is collective.
class Preparation {
 public:
  /// Reads the traces and finds what is wrong before the run. Throws Error (bad_input) for the first fault, on all
  /// ranks (parallel::Communicator::agree); with `problems`, which must be of a single rank, collects all of them
  /// instead.
  Preparation(const config::Configuration& configuration, parallel::Communicator& world,
              std::vector<Error>* problems = nullptr);

  executor::Setting setting();

  const topology::Topology& topology() const { return topology_; }
  const trace::Store& store() const { return store_; }
  const std::vector<trace::Group>& groups() const { return groups_; }
  const std::vector<executor::CommunicatorSpec>& communicators() const { return communicators_; }
  const std::vector<executor::NpuSpec>& npus() const { return npus_; }
  std::uint32_t num_npus() const { return topology_.num_npus(); }
  /// Of all ranks, on rank 0.
  const Notices& notices() const { return notices_; }
  std::uint64_t num_nodes() const;  ///< of this rank's NPUs

 private:
  /// What is read before any trace.
  struct Foundations {
    topology::Topology topology;
    topology::Partition partition;
    trace::NamedGroups groups;
  };
  static Foundations lay_foundations(const config::Configuration& configuration, parallel::Communicator& world);

  Preparation(const config::Configuration& configuration, parallel::Communicator& world, std::vector<Error>* problems,
              Foundations foundations);

  void read_traces();
  void make_programs();
  void require_remote_memory();
  void agree_on_groups();
  void check_algorithms();
  void gather_notices();
  void guard(const std::function<void()>& body);

  const config::Configuration& configuration_;
  parallel::Communicator& world_;
  std::vector<Error>* problems_;
  topology::Topology topology_;
  topology::Partition partition_;
  device::RemoteMemory memory_;
  collective::Engine engine_;
  trace::Store store_;
  std::vector<Rank> host_of_npu_, host_of_server_;
  std::vector<NpuId> local_npus_;
  std::vector<trace::NpuTrace> traces_;  // [local NPUs that could be read]
  std::map<const trace::Graph*, std::unique_ptr<executor::Program>> programs_;
  std::vector<trace::Group> groups_;
  std::vector<executor::CommunicatorSpec> communicators_;
  std::vector<executor::NpuSpec> npus_;
  Notices own_notices_;  // of this rank
  Notices notices_;      // of all, on rank 0
};

}  // namespace orrery::sim
