#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

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

/// Prints a table with columns as wide as their texts.
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

/// Prints rows with the metrics that one of them has.
void print_rows(const StudyRun& run, const std::vector<Row>& rows, const std::vector<std::size_t>& listed) {
  Lines lines(1, {"trial"});
  const auto names = varied_names(run.study);
  for (const auto& one : names) lines[0].push_back(cited(one, 40));
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < explore::metrics().size(); ++i)
    if (std::ranges::any_of(listed, [&](std::size_t row) { return !std::isnan(rows[row].trial.metric(i)); }))
      known.push_back(i);
  for (const std::size_t i : known) lines[0].emplace_back(explore::metrics()[i].name);
  for (const std::size_t row : listed) {
    auto& line = lines.emplace_back(1, fmt::format("{}", rows[row].number));
    const explore::Point point = run.points[row];
    for (const auto& one : names) line.push_back(cited(text_of(point, one), 40));
    for (const std::size_t i : known) {
      const double metric = rows[row].trial.metric(i);
      line.push_back(std::isnan(metric) ? "-" : fmt::format("{:.5g}", metric));
    }
  }
  print_columns(lines);
}

}  // namespace

void print_found(const StudyRun& run, const std::vector<Row>& rows, const results::StudyTable& table) {
  for (const auto& [reason, count] : table.funnel) fmt::print("{:>12}  {}\n", count, cited(reason));
  if (table.best.empty())
    throw Error(ErrorCode::bad_input, {.file = run.command.file.string()},
                fmt::format("no configuration of {} is left, for the reasons that stand above", table.number.size()),
                "one that fits and keeps all constraints",
                fmt::format("{} has the reason of each.", run.command.output.string()));
  fmt::print("\n{}\n", run.study.objectives.size() == 1 ? "The best, the first one first:" : "The Pareto front:");
  print_rows(run, rows, best_rows(run.study, rows));
  fmt::print("\nThe CONFIG.yaml of a trial: orrery explore {} --trial {}\n", run.command.file.string(),
             table.best.front());
}

void print_points(const Study& study, const explore::Points& points, const explore::Funnel& funnel) {
  Lines lines(1, {"trial"});
  for (const auto& one : all_names(study)) lines[0].push_back(cited(one, 40));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const explore::Point point = points[i];
    auto& line = lines.emplace_back(1, fmt::format("{}", point.number));
    for (const auto& one : all_names(study)) line.push_back(cited(text_of(point, one), 40));
  }
  print_columns(lines);
  fmt::print("{} of {} combinations are legal\n", funnel.legal, funnel.raw);
}

}  // namespace orrery::app
