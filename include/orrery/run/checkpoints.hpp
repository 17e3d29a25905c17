#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/checkpoint/file.hpp"
#include "orrery/checkpoint/piece.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/kernel.hpp"
#include "orrery/results/repetitions.hpp"
#include "orrery/run/preparation.hpp"

namespace orrery::run {

/// Where a simulation of a run is.
struct SavedSimulation {
  using Divergences = std::vector<communicator::Divergence>;

  Time now = Time::from_ps(-1);       ///< all events up to this time have been handled
  std::vector<Divergences> foldings;  ///< those by which its NPUs were folded again before it began

  void serialize(Archive& archive) { archive(now, foldings); }
};

/// What a checkpoint says of its run.
struct CheckpointHead {
  using Digests = std::vector<std::pair<std::string, std::uint64_t>>;

  std::string program;        ///< version and revision of the program that wrote it
  std::string configuration;  ///< configuration on which results depend, as YAML
  Digests texts;              ///< digests of the texts that the configuration names, by their names
  Digests traces;             ///< digests of the trace files, by their names
  SavedSimulation first;
  std::vector<results::Repetition> complete;  ///< complete repetitions; empty: the first one is in progress
  SavedSimulation later;                      ///< the one under way, if it is not the first one

  void serialize(Archive& archive) { archive(program, configuration, texts, traces, first, complete, later); }
};

/// Writes the checkpoints of a run as its options say, and reads the one from which it goes on.
class Checkpoints {
 public:
  /// Finds the checkpoint to go on from, if there is one, and compares its configuration with this one. Throws Error
  /// (bad_input) on all ranks for a run that takes no checkpoints, and for a checkpoint that is damaged, of another
  /// program or of another configuration; Error (output) if one could not be written, or would replace a file that is
  /// no checkpoint, or one from which the run does not go on, without --force. Collective.
  Checkpoints(const config::Configuration& configuration, parallel::Communicator& world);

  /// Compares the traces with those of the checkpoint, and folds the NPUs as its run did. Throws Error (bad_input) on
  /// all ranks for other traces. Collective.
  void prepare(Preparation& preparation);

  /// Begins a simulation: from the checkpoint if that has it, else from time 0. Collective.
  void begin(model::RankModel& model, pdes::Kernel& kernel);
  /// Takes note that a simulation has come to its end. The checkpoints of repetitions hold the end of the first one,
  /// of which the results are.
  void note_end(model::RankModel& model, const pdes::Kernel& kernel);
  /// Returns whether it is time to write: never sooner than the last one took, so that the run goes on. O(1).
  bool is_due() const;
  /// Writes a checkpoint where the kernel has stopped. A failure is a warning. Collective.
  void write(model::RankModel& model, const pdes::Kernel& kernel);
  /// Takes note that the NPUs are folded again because of these divergences.
  void note_folding(const SavedSimulation::Divergences& divergences) { present().foldings.push_back(divergences); }

  /// Returns the repetition of this number if the checkpoint has it as complete; else null.
  const results::Repetition* complete(std::size_t number) const;
  /// Begins another repetition, of a preparation that is the one before or `is_new`: takes note of those that are
  /// complete, and folds the NPUs as the run of the checkpoint did.
  void begin_repetition(const std::vector<results::Repetition>& complete, Preparation& preparation, bool is_new);

  /// Returns the newest file that this run has written; empty if there is none.
  const std::filesystem::path& written() const { return written_; }

 private:
  using Clock = std::chrono::steady_clock;

  void check_place(const config::RunOptions& options);
  void find();
  SavedSimulation& present() { return is_later_ ? head_.later : head_.first; }

  parallel::Communicator& world_;
  std::filesystem::path file_, restart_;               ///< empty: none
  checkpoint::Older older_ = checkpoint::Older::none;  ///< state of the place of the next one, on rank 0
  std::filesystem::path found_;                        ///< the generation of restart_ that is read, on rank 0
  std::chrono::duration<double> interval_;
  Clock::time_point last_ = Clock::now();
  Clock::duration cost_{};  ///< cost of the last one
  bool is_quiet_;
  bool has_repetitions_;
  bool is_later_ = false;  ///< the first simulation is over
  CheckpointHead head_;    ///< head of this run
  std::vector<checkpoint::Piece> end_of_first_;
  std::filesystem::path written_;
};

/// Returns about how many bytes a checkpoint of a prepared run takes.
std::uint64_t checkpoint_size(const Preparation& preparation, const config::Configuration& configuration);

}  // namespace orrery::run
