#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/collective/collective.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/fold/folding.hpp"
#include "orrery/memory/remote_memory.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/npu/program.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/partition/partition.hpp"
#include "orrery/topology/topology.hpp"
#include "orrery/trace/store.hpp"

namespace orrery::app {

/// Everything that stands before the run: the traces of this rank's NPUs, read and checked, and what the ranks have
/// agreed on. It outlives the executor, which borrows from it. Every function is collective.
class Preparation {
 public:
  /// Reads the traces and finds what is wrong before the run. Throws on all ranks if something is: on rank 0 all faults
  /// of all ranks (Faults::raise), elsewhere parallel::FailedElsewhere.
  Preparation(const config::Configuration& configuration, parallel::Communicator& world);
  /// The same, but adds this rank's faults to those given. What is made has no other use if there are any. With faults
  /// of the configuration (config::Findings), what depends on the system is not checked.
  Preparation(const config::Configuration& configuration, parallel::Communicator& world, Faults& faults);
  ~Preparation();

  /// Of a folded run (docs/folding.md): every rank reads all traces by itself, and then hosts some of the classes of
  /// NPUs that are alike. Throws as the first constructor does. Collective.
  static std::unique_ptr<Preparation> folded(const config::Configuration& configuration, parallel::Communicator& world);
  /// How the run is folded; none if it is not.
  const fold::Folding* folding() const { return folding_.get(); }

  npu::RunContext run_context();
  /// Where the node with this id of the trace of any NPU is. Reads the trace again if another rank hosts the NPU.
  Place place_of(NpuId npu, std::uint64_t node) const;

  const topology::Topology& topology() const { return delays_.topology(); }
  const trace::Store& store() const { return store_; }
  const std::vector<trace::Group>& groups() const { return groups_; }
  std::span<const communicator::CommunicatorSpec> communicators()
      const;                                   ///< of a folded run those that stand for others
  std::span<const npu::NpuSpec> npus() const;  ///< of this rank; of a folded run likewise
  std::uint32_t num_npus() const { return topology().num_npus(); }
  /// [num_dimensions] collectives of an NPU that share the bandwidth; empty: they do not.
  const std::vector<std::uint32_t>& sharers() const { return sharers_; }
  /// Of all ranks, on rank 0.
  const Notices& notices() const { return notices_; }
  std::uint64_t num_nodes() const;  ///< of this rank's NPUs

 private:
  /// What is read before any trace.
  struct Foundations {
    network::DelayModel delays;
    partition::Partition partition;
    trace::NamedGroups groups;
    bool groups_known = true;  ///< without faults
  };
  /// Which rank of how many a folded run is prepared for.
  struct Seat {
    Rank here;
    int num_ranks = 1;
  };
  static Foundations lay_foundations(const config::Configuration& configuration, parallel::Communicator& world,
                                     Faults& faults);

  Preparation(const config::Configuration& configuration, parallel::Communicator& world, Faults&& faults);
  Preparation(const config::Configuration& configuration, parallel::Communicator& world, Faults& faults,
              Foundations foundations, std::optional<Seat> folded_for = {});

  void read_traces(Faults& faults);
  std::vector<char> gather_read();
  void make_programs(Faults& faults);
  void require_tags(const npu::NpuSpec& npu, Faults& faults) const;
  void require_dimensions(Faults& faults) const;
  void require_remote_memory(Faults& faults);
  void require_local_memory(Faults& faults);
  void agree_on_groups();
  void note_custom_nodes();
  void fold(const Seat& seat);
  void check_agreement(bool groups_known, Faults& faults);
  void check_algorithms(Faults& faults);
  void check_durations(Faults& faults);
  void gather_notices();

  const config::Configuration& configuration_;
  parallel::Communicator& world_;
  Rank here_;
  network::DelayModel delays_;
  partition::Partition partition_;
  memory::RemoteMemory memory_;
  collective::Engine engine_;
  std::vector<std::uint32_t> sharers_;
  trace::Store store_;
  std::vector<Rank> host_of_npu_, host_of_server_;
  std::vector<NpuId> local_npus_;
  std::vector<trace::NpuTrace> traces_;  // [local NPUs that could be read]
  std::map<const trace::Graph*, std::unique_ptr<npu::Program>> programs_;
  std::vector<trace::Group> groups_;
  std::vector<communicator::CommunicatorSpec> communicators_;
  std::vector<npu::NpuSpec> npus_;
  std::unique_ptr<parallel::Communicator> alone_;  // of a folded run: what world_ is
  std::unique_ptr<fold::Folding> folding_;
  Notices own_notices_;  // of this rank
  Notices notices_;      // of all, on rank 0
};

}  // namespace orrery::app
