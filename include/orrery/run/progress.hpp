#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "orrery/config/configuration.hpp"
#include "orrery/model/rank_model.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/parallel/transport.hpp"

namespace orrery::run {

/// How far a run is, over all ranks.
struct ProgressFigures {
  double share = 0;  ///< share of the nodes of all iterations
  std::uint64_t npus_done = 0;
  std::uint64_t num_npus = 0;
  double events_per_second = 0;
  double elapsed_s = 0;  ///< wall-clock time of the simulation
  Time simulated;        ///< simulated time of the rank that is furthest
};

/// Returns the line for a terminal of so many columns: a bar, the share, NPUs, events per second and the time left. It
/// is shorter than the terminal is wide; a narrow terminal gets fewer figures.
std::string progress_bar(const ProgressFigures& figures, std::size_t columns);

/// Returns the line for a file or a pipe.
std::string progress_text(const ProgressFigures& figures);

/// Prints on standard error of rank 0, from time to time, how many of its traces it has read.
class ReadingLine {
 public:
  /// `num_npus`: NPUs whose traces this rank reads.
  ReadingLine(const config::RunOptions& options, Rank rank, std::size_t num_npus);
  ~ReadingLine();
  ReadingLine(const ReadingLine&) = delete;
  ReadingLine& operator=(const ReadingLine&) = delete;

  /// Prints if the interval is over. `share`: what has been read of the next file, if it is worth telling. Cost O(1).
  void update(std::size_t num_read, double share = 0);

 private:
  using Clock = std::chrono::steady_clock;

  const bool is_shown_;
  const bool renews_;
  const std::size_t num_npus_;
  const std::chrono::duration<double> interval_;
  const Clock::time_point start_;
  Clock::time_point last_;
  bool is_on_screen_ = false;  ///< a line that is to be removed
};

/// Prints on standard error of rank 0, from time to time, how far all ranks are. The other ranks send their counts to
/// rank 0 unasked, a few times in each interval, so that no rank waits for another one.
class ProgressLine {
 public:
  /// `num_nodes`: of all iterations of this rank's NPUs. Collective.
  ProgressLine(const config::RunOptions& options, const model::RankModel& model, std::uint64_t num_nodes,
               parallel::Communicator& world);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Prints, or tells rank 0, if the interval is over. Cost O(1) before that, then O(NPUs of this rank + ranks).
  void update(std::uint64_t events, Time now);
  /// Takes in what other ranks have sent, and removes a line that renews itself. Collective.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  /// What a rank tells of itself.
  struct Counts {
    std::uint64_t events = 0, npus_done = 0, nodes_done = 0;
    std::int64_t simulated_ps = 0;
    bool is_last = false;
  };

  Counts count(std::uint64_t events, Time now) const;
  void tell(const Counts& counts);
  void take_in();
  ProgressFigures figures(double seconds_since_last);
  void remove();

  const model::RankModel& model_;
  const bool is_root_;
  bool renews_ = false;  ///< one line that renews itself
  bool shown_ = false;
  const std::uint64_t own_npus_;
  std::uint64_t num_npus_ = 0, num_nodes_ = 0;  ///< NPUs and nodes of all ranks
  std::chrono::duration<double> interval_;
  Clock::time_point start_, last_;
  std::uint64_t last_events_ = 0;
  std::vector<Counts> counts_;                      ///< [ranks] on rank 0: what they told last
  std::unique_ptr<parallel::Transport> transport_;  ///< null on a single rank
};

}  // namespace orrery::run
