#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "orrery/base/archive.hpp"
#include "orrery/base/time.hpp"
#include "orrery/checkpoint/piece.hpp"
#include "orrery/config/configuration.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/pdes/kernel.hpp"
#include "preparation.hpp"

namespace orrery::app {

/// What a checkpoint says of its run.
struct CheckpointHead {
  using Digests = std::vector<std::pair<std::string, std::uint64_t>>;
  using Divergences = std::vector<communicator::Divergence>;

  std::string program;                ///< version and revision of the program that wrote it
  std::string configuration;          ///< what results depend on, as YAML
  Digests texts;                      ///< of the texts that the configuration names, by their names
  Digests traces;                     ///< of the trace files, by their names
  Time now;                           ///< all events up to this time have been handled
  std::vector<Divergences> foldings;  ///< of the runs before this one, by which NPUs were folded again

  void serialize(Archive& archive) { archive(program, configuration, texts, traces, now, foldings); }
};

/// Writes the checkpoints of a run as its options say, and reads the one from which it goes on.
class Checkpoints {
 public:
  /// Finds the checkpoint to go on from, if there is one, and compares its configuration with this one. Throws Error
  /// (bad_input) on all ranks for a run that takes no checkpoints, and for a checkpoint that is damaged, of another
  /// program or of another configuration; Error (output) if one could not be written. Collective.
  Checkpoints(const config::Configuration& configuration, parallel::Communicator& world);

  /// Compares the traces with those of the checkpoint, and folds the NPUs as its run did. Throws Error (bad_input) on
  /// all ranks for other traces. Collective.
  void prepare(Preparation& preparation);

  /// Begins a simulation: from the checkpoint if it is the first one and there is any, else from time 0. Collective.
  void begin(model::RankModel& model, pdes::Kernel& kernel);
  /// Returns whether it is time to write: never sooner than the last one took, so that the run goes on. O(1).
  bool is_due() const;
  /// Writes a checkpoint where the kernel has stopped. A failure is a warning. Collective.
  void write(model::RankModel& model, const pdes::Kernel& kernel);
  /// Takes note that the NPUs are folded again because of these divergences.
  void note_folding(const CheckpointHead::Divergences& divergences) { head_.foldings.push_back(divergences); }

  /// Returns the newest file that this run has written; empty if there is none.
  const std::filesystem::path& written() const { return written_; }

 private:
  using Clock = std::chrono::steady_clock;

  void find();

  parallel::Communicator& world_;
  std::filesystem::path file_, restart_;  ///< empty: none
  std::filesystem::path found_;           ///< the generation of restart_ that is read, on rank 0
  std::chrono::duration<double> interval_;
  Clock::time_point last_ = Clock::now();
  Clock::duration cost_{};  ///< of the last one
  bool is_quiet_;
  CheckpointHead head_;  ///< of this run
  std::filesystem::path written_;
};

/// Returns about how many bytes a checkpoint of a prepared run takes.
std::uint64_t checkpoint_size(const Preparation& preparation, const config::Configuration& configuration);

}  // namespace orrery::app
