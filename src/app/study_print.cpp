#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "faulty_trials.hpp"
#include "orrery/base/text.hpp"
#include "study_table.hpp"

namespace orrery::app {
namespace {

using explore::Study;
using Lines = std::vector<std::vector<std::string>>;

/// Returns the names of the study, those of one value for all left out.
std::vector<std::string> varied_names(const Study& study) {
  std::vector<std::string> names;
  for (const auto& parameter : study.parameters)
    if (parameter.values.size() != 1) names.push_back(parameter.name);
  for (const auto& derived : study.derived) names.push_back(derived.name);
  return names;
}

/// Prints rows with the metrics that one of them has. A star marks those with a caveat.
void print_rows(const StudyRun& run, const std::vector<Row>& rows, const std::vector<std::size_t>& listed,
                const results::StudyTable& table) {
  Lines lines(1, {"trial"});
  const auto names = varied_names(run.study);
  for (const auto& one : names) lines[0].push_back(cited(one, 40));
  std::vector<std::string> known;
  for (const std::string& metric : shown_metrics(run.study))
    if (std::ranges::any_of(listed, [&](std::size_t row) { return !std::isnan(metric_of(rows[row].trial, metric)); }))
      known.push_back(metric);
  lines[0].insert(lines[0].end(), known.begin(), known.end());
  for (const std::size_t row : listed) {
    auto& line = lines.emplace_back(1, fmt::format("{}{}", rows[row].number, table.caveat[row].empty() ? "" : "*"));
    const explore::Point point = run.points[row];
    for (const auto& one : names) line.push_back(cited(text_of(run.space, point, one), 40));
    for (const std::string& metric : known) {
      const double value = metric_of(rows[row].trial, metric);
      line.push_back(std::isnan(value) ? "-" : fmt::format("{:.5g}", value));
    }
  }
  print_columns(lines);
  std::set<std::string> caveats;
  for (const std::size_t row : listed)
    if (!table.caveat[row].empty()) caveats.insert(table.caveat[row]);
  for (const std::string& caveat : caveats) fmt::print("* {}\n", cited(caveat, 1000));
}

/// Returns by which share a trial misses what it should keep, at most; infinite where no number says so.
double miss_of(const StudyRun& run, std::size_t row, const Trial& trial) {
  constexpr double unknown = std::numeric_limits<double>::infinity();
  if (trial.status == TrialStatus::does_not_fit) {  // "needs [at least] 2.5 GB of 2 GB"
    const std::size_t of = trial.text.find(" of ");
    const std::size_t begin = trial.text.find_first_of("0123456789");
    if (of == std::string::npos || begin >= of) return unknown;
    const double needed = explore::as_real(explore::value_of(trial.text.substr(begin, of - begin)));
    const double room = explore::as_real(explore::value_of(trial.text.substr(of + 4)));
    return needed / room - 1;
  }
  if (trial.status != TrialStatus::excluded) return unknown;
  const explore::Names names = names_of(run.study, run.points[row], trial);
  double worst = 0;
  for (const auto& constraint : run.study.constraints) {
    const bool is_known = std::ranges::all_of(constraint.names(), [&](const auto& one) { return names.contains(one); });
    if (is_known && constraint.holds(names)) continue;
    const auto sides = is_known ? constraint.sides(names) : std::nullopt;
    if (!sides) return unknown;
    worst = std::max(worst, std::abs(sides->first - sides->second) / std::max(std::abs(sides->second), 1e-300));
  }
  return worst > 0 ? worst : unknown;  // all constraints hold: it lacks a metric
}

/// Prints the trial that misses the limits by least.
void print_nearest_miss(const StudyRun& run, const std::vector<Row>& rows) {
  double least = std::numeric_limits<double>::infinity();
  std::size_t nearest = 0;
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (const double miss = miss_of(run, row, rows[row].trial); miss < least) {
      least = miss;
      nearest = row;
    }
  if (std::isinf(least)) return;
  const explore::Point point = run.points[nearest];
  std::string values;
  for (const auto& one : varied_names(run.study))
    values +=
        fmt::format("{}{} = {}", values.empty() ? "" : ", ", cited(one, 40), cited(text_of(run.space, point, one), 40));
  fmt::print("\nThe nearest miss, by {:.3g} %: trial {} ({})\n  {}: {}\n", 100 * least, rows[nearest].number, values,
             name(rows[nearest].trial.status), cited(rows[nearest].trial.text));
}

}  // namespace

void print_columns(const Lines& lines) {
  std::vector<std::size_t> widths;
  for (const auto& line : lines) {
    widths.resize(std::max(widths.size(), line.size()));
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) fmt::print("{}{:>{}}", i == 0 ? "" : "  ", line[i], widths[i]);
    fmt::print("\n");
  }
}

void print_funnel(const Study& study, const explore::Funnel& funnel) {
  for (const auto& [reason, count] : counts_of(study, funnel)) fmt::print("{:>12}  {}\n", count, cited(reason));
}

void print_found(const StudyRun& run, const std::vector<Row>& rows, const results::StudyTable& table) {
  for (const auto& [reason, count] : table.funnel) fmt::print("{:>12}  {}\n", count, cited(reason));
  print_faulty_trials(run, rows);
  if (table.best.empty()) {
    print_nearest_miss(run, rows);
    if (run.command.parts.shard) return;  // another shard may have one
    throw Error(ErrorCode::bad_input, {.file = run.command.file.string()},
                fmt::format("no configuration of {} is left, for the reasons that stand above", table.number.size()),
                "one that fits and keeps all constraints",
                fmt::format("{} has the reason of each.", run.command.output.string()));
  }
  fmt::print("\n{}\n", run.study.objectives.size() == 1 ? "The best, the first one first:" : "The Pareto front:");
  print_rows(run, rows, best_rows(run.study, rows), table);
  if (run.command.write_configurations)
    fmt::print("\nThe CONFIG.yaml of trial N: {}\n",
               std::filesystem::path(run.command.output).replace_extension(".trial-N.yaml").string());
  else
    fmt::print("\nThe CONFIG.yaml of a trial: orrery explore {} --trial {}\n", run.command.file.string(),
               table.best.front());
}

void print_points(const Study& study, const explore::Points& points, const explore::Funnel& funnel) {
  Lines lines(1, {"trial"});
  for (const auto& one : all_names(study)) lines[0].push_back(cited(one, 40));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const explore::Point point = points[i];
    auto& line = lines.emplace_back(1, fmt::format("{}", point.number));
    for (const auto& one : all_names(study)) line.push_back(cited(text_of(points.space(), point, one), 40));
  }
  print_columns(lines);
  fmt::print("{} of {} {} are legal\n", funnel.legal, funnel.raw,
             explore::draws_samples(study.strategy) ? "draws" : "combinations");
}

}  // namespace orrery::app
