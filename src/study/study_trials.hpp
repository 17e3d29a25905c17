#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/read.hpp"
#include "orrery/config/serving.hpp"
#include "orrery/config/variants.hpp"
#include "orrery/explore/space.hpp"
#include "orrery/parallel/communicator.hpp"
#include "orrery/study/options.hpp"
#include "trial.hpp"
#include "trial_journal.hpp"

namespace orrery::study {

/// What came of a point of a study.
struct Row {
  std::uint64_t number = 0;  ///< number of the point
  Trial trial;
  double lower_bound = std::numeric_limits<double>::quiet_NaN();  ///< bound of the time of a step, s
};

/// The trials of a study that were simulated or ruled out.
struct StudyTrials {
  std::vector<Row> rows;             ///< [points]; on rank 0 only
  std::vector<std::uint64_t> extra;  ///< those that turned out to be ruled out after they had been simulated
};

/// Returns what the configurations of all points have in common.
config::Inputs common_inputs(const explore::Study& study, const ExploreCommand& command);
/// Returns the settings of a point, after those that all have in common.
std::vector<std::string> settings_of(const explore::Point& point);
/// Returns the configuration of a point.
config::Inputs inputs_of(const explore::Study& study, const ExploreCommand& command, const explore::Point& point);

/// What trials need to know.
struct StudyRun {
  const explore::Study& study;
  const ExploreCommand& command;
  const explore::Space& space;
  const explore::Points& points;  ///< the same on all ranks
  TrialJournal& journal;
  std::function<bool()> stop_requested;
  /// The configurations of all points.
  std::shared_ptr<config::Variants> variants = std::make_shared<config::Variants>(common_inputs(study, command));
  bool serves = config::is_serving({.file = study.base});  ///< the base serves requests
};

/// Trials of a rank by number.
using Trials = std::map<std::uint64_t, Trial>;

/// Returns the position of a metric or of a path in Trial::metrics; one behind the last one for another name.
std::size_t index_of_metric(std::string_view metric);
/// Returns a metric of a trial; NaN if it is not known.
double metric_of(const Trial& trial, std::string_view metric);
/// Returns the values of the names of a point, and of the metrics that are known.
explore::Names names_of(const explore::Study& study, const explore::Point& point, const Trial& trial);
/// Simulates a point and adds it to `mine` and to the journal. Returns false if a stop on request ended it.
bool simulate_point(const StudyRun& run, const explore::Point& point, Trials& mine);
/// The number of a point that is none of the study's points; the journal does not keep it.
inline constexpr std::uint64_t unnumbered = ~std::uint64_t{0};
/// Simulates the points of rank 0, each on one rank. Returns their trials on all ranks, in order. Throws Error
/// (interrupted) on all ranks if a stop on request ended it. Collective.
std::vector<Trial> simulate_points(const StudyRun& run, const std::vector<explore::Point>& points,
                                   parallel::Communicator& world);
/// Returns the trials of all ranks on rank 0. Collective.
Trials gather_trials(Trials mine, parallel::Communicator& world);
/// Takes a trial out of `trials`, or returns that of an earlier job; nothing if there is none.
std::optional<Trial> taken(std::uint64_t number, Trials& trials, const TrialJournal& journal);
/// Ends all ranks if one of them has stopped. `done`: trials of this rank. Collective.
void end_stopped_study(const StudyRun& run, bool has_stopped, std::size_t done, parallel::Communicator& world);

/// Simulates the points from position `first` on that no earlier job has done, each on one rank, and adds their rows to
/// `found`. Throws Error (interrupted) on all ranks if a stop on request ended it early. Collective.
void simulate_from(std::size_t first, const StudyRun& run, StudyTrials& found, parallel::Communicator& world);
/// Simulates all points. Throws as `simulate_from`. Collective.
StudyTrials simulate_all(const StudyRun& run, parallel::Communicator& world);

/// Simulates the points that may be among the best, those with the least bounds first. The rows do not depend on the
/// number of ranks: a point is ruled out if the best trials rule out its bounds, also if it has been simulated. Throws
/// as `simulate_all`, and Error (internal) if a time is below its bound. Collective.
StudyTrials simulate_bounded(const StudyRun& run, parallel::Communicator& world);

}  // namespace orrery::study
