#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/base/faults.hpp"
#include "orrery/base/notices.hpp"
#include "orrery/check/checks.hpp"
#include "orrery/communicator/communications.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/fold/folding.hpp"
#include "orrery/npu/program.hpp"
#include "orrery/npu/run_context.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/run/hosted_traces.hpp"
#include "orrery/run/system.hpp"

namespace orrery::run {

/// Everything that is made before a run: the programs of the NPUs of this rank, and the communicators, which have the
/// same numbers on all ranks. All of it has been checked. It outlives the model, which refers to it.
class Preparation {
 public:
  /// Prepares the NPUs that this rank hosts and adds what is wrong with them to `faults`, which may hold faults of the
  /// configuration already. With faults on any rank, the result is of no use for a run. With `folds`, the NPUs that
  /// represent others are then dealt to the ranks. Collective.
  /// `fixed`: see read_hosted_traces.
  Preparation(const config::Configuration& configuration, parallel::Communicator& world, Faults& faults,
              bool folds = false, std::span<const HostedNpu> fixed = {});
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  /// Returns what the logical processes of this rank work with. It refers to this object.
  npu::RunContext run_context();
  const System& system() const { return *system_; }
  const HostedTraces& traces() const { return *traces_; }
  const trace::Store& store() const { return traces_->store; }
  /// Returns how the run is folded; null if it is not.
  const fold::Folding* folding() const { return folded_ ? &folded_->folding : nullptr; }
  /// Folds again after a run with these divergences, which are those of all ranks. The run has to be made again, or to
  /// be split. Collective.
  void fold_again(std::span<const communicator::Divergence> divergences, parallel::Communicator& world);
  /// Takes note of the classes up to a time from which the run goes on with those of now; without any, that it begins
  /// again with these.
  void note_split(std::optional<fold::EarlierClasses> before);
  /// Says how the run is folded; empty if it is not.
  std::string folding_description() const {
    return folded_ ? folded_->folding.description(earlier_classes_) : std::string();
  }
  /// Returns the process groups in order of GroupId, also those that a folded run does not simulate.
  const std::vector<trace::Group>& groups() const { return rank_->communicators.groups(); }
  /// Returns NPUs that represent others, as they are in the run that is not folded. Reads those that other ranks have.
  std::vector<npu::NpuSpec> unfolded(std::span<const NpuId> representatives);
  /// Returns the communicators of all of them, also those that a folded run does not simulate.
  std::span<const communicator::CommunicatorSpec> communicators() const { return rank_->communicators.specs(); }
  /// Returns the NPUs that this rank simulates.
  std::span<const npu::NpuSpec> simulated_npus() const {
    return folded_ ? folded_->folding.npus() : std::span<const npu::NpuSpec>(rank_->npus);
  }
  std::uint32_t num_npus() const { return system_->topology().num_npus(); }
  /// Returns the number of nodes in the traces of the NPUs that this rank simulates.
  std::uint64_t num_nodes() const;
  /// Returns how many collectives of an NPU share the bandwidth of each dimension, of several jobs the most:
  /// [num_dimensions]; empty: they do not share it.
  const std::vector<std::uint32_t>& sharers() const { return sharers_; }
  /// Returns the warnings of all ranks on rank 0.
  const Notices& notices() const { return notices_; }

 private:
  /// The NPUs of this rank, and the communicators of all ranks. They point into traces and programs.
  struct RankNpus {
    communicator::CommunicatorTable communicators;
    std::vector<npu::NpuSpec> npus;
  };
  struct FoldedRun {
    FoldedRun(const npu::RunContext& unfolded, fold::Assignment ranks, const fold::ReadNpus& read,
              parallel::Communicator& world, fold::Assumptions assumptions);

    fold::Assignment assignment;
    fold::Folding folding;
    std::vector<Rank> host_of_server;
  };

  // The steps of the constructor, in this order. All are collective.
  void read(parallel::Communicator& world, Faults& faults, std::span<const HostedNpu> fixed);
  void number(parallel::Communicator& world);
  std::vector<std::uint32_t> share_bandwidth(parallel::Communicator& world);
  void check(parallel::Communicator& world, Faults& faults, bool folds);

  npu::RunContext unfolded_context(std::span<const npu::NpuSpec> npus);
  fold::Assignment assignment(parallel::Communicator& world) const;
  void fold(fold::Assignment assignment, fold::Assumptions assumptions, parallel::Communicator& world);
  void read_more(std::span<const NpuId> npus);

  const config::Configuration& configuration_;
  check::Readable readable_;
  Rank here_;  // in `world`
  std::unique_ptr<System> system_;
  std::optional<HostedTraces> traces_;  // set by `read`
  std::vector<Rank> host_of_server_;
  npu::Programs programs_;
  std::optional<RankNpus> rank_;          // set by `number`
  std::vector<std::uint32_t> positions_;  // of_all_.positions
  npu::RunContext::AllTraces of_all_;
  std::vector<std::uint32_t> sharers_;
  std::map<NpuId, trace::NpuTrace> other_traces_;  // of NPUs that other ranks host, as far as this one needs them
  std::optional<FoldedRun> folded_;
  std::vector<fold::EarlierClasses> earlier_classes_;
  Notices notices_;
};

/// Prepares a run, folded or not as the configuration says. Throws on all ranks if something is wrong: on rank 0 the
/// faults of all ranks (Faults::raise), elsewhere parallel::FailedElsewhere. Collective.
std::unique_ptr<Preparation> prepare(const config::Configuration& configuration, parallel::Communicator& world);

}  // namespace orrery::run
