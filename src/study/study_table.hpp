#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/explore/space.hpp"
#include "orrery/results/study.hpp"
#include "study_trials.hpp"

namespace orrery::study {

/// Returns "done", "does-not-fit", ...
std::string_view name(TrialStatus status);
/// Returns the status of a name. Throws Error (bad_input) for another text.
TrialStatus status_of(std::string_view name);

/// Returns the metrics that tables show: all that have names, and the paths that the study names.
std::vector<std::string> shown_metrics(const explore::Study& study);
/// Returns the column of /trials that a metric or a path has.
std::string column_of(std::string_view metric);

/// Returns the names of the parameters and of the derived values.
std::vector<std::string> all_names(const explore::Study& study);
/// Returns the text of a name's value: that of a parameter as the configuration has it; empty where it has none.
std::string text_of(const explore::Space& space, const explore::Point& point, const std::string& name);
/// Returns "tp = 2, dp = 4" for these names of a point.
std::string values_text(const explore::Space& space, const explore::Point& point,
                        const std::vector<std::string>& names);
/// Returns the metrics of the objectives; NaN unless the trial is done.
std::vector<double> objectives_of(const explore::Study& study, const Trial& trial);
/// Returns the positions of the best rows.
std::vector<std::size_t> best_rows(const explore::Study& study, const std::vector<Row>& rows);

/// Returns how many points fell to what before a simulation.
std::vector<std::pair<std::string, std::uint64_t>> counts_of(const explore::Study& study,
                                                             const explore::Funnel& funnel);
/// Returns what a study found, as explore.h5 holds it, without the texts of inputs and the sensitivity. Row i is that
/// of point i.
results::StudyTable table_of(const StudyRun& run, const std::vector<Row>& rows, const explore::Funnel& funnel);

/// Returns the main effect of each parameter with more than one value, but for those that are not known.
std::vector<std::pair<std::string, double>> main_effects(const explore::Study& study, const std::vector<Row>& rows,
                                                         const results::StudyTable& table);

/// Writes the trials as CSV, with units in the header.
void write_csv(const std::filesystem::path& path, const results::StudyTable& table);

/// Prints a table with columns as wide as their texts.
void print_columns(const std::vector<std::vector<std::string>>& lines);
/// Prints how many points fell to what before a simulation.
void print_funnel(const explore::Study& study, const explore::Funnel& funnel);
/// Prints the funnel and the best trials. Throws Error (bad_input) if there are none.
void print_found(const StudyRun& run, const std::vector<Row>& rows, const results::StudyTable& table);
/// Prints the points without simulating them.
void print_points(const explore::Study& study, const explore::Points& points, const explore::Funnel& funnel);

}  // namespace orrery::study
