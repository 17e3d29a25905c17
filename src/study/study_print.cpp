#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "faulty_trials.hpp"
#include "fitted_table.hpp"
#include "orrery/base/text.hpp"
#include "orrery/results/metric_text.hpp"
#include "study_outputs.hpp"
#include "study_table.hpp"

namespace orrery::study {
namespace {

using explore::Study;
using Cells = std::vector<std::vector<std::string>>;  ///< [lines][columns]

/// Returns the names of the study, those of one value for all left out.
std::vector<std::string> varied_names(const Study& study) {
  std::vector<std::string> names;
  for (const auto& parameter : study.parameters)
    if (parameter.values.size() != 1) names.push_back(parameter.name);
  for (const auto& derived : study.derived) names.push_back(derived.name);
  return names;
}

/// Returns a value for a table: a number with many digits is rounded to four, and keeps its unit.
std::string shortened_value(const std::string& text) {
  constexpr std::size_t long_text = 10, most_characters = 40;
  if (text.size() <= long_text) return cited(text, most_characters);
  double number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const bool is_quantity = unit.empty() || (unit.size() <= long_text && unit.front() == ' ');
  if (failure != std::errc() || !is_quantity) return cited(text, most_characters);
  return fmt::format("{:.4g}{}", number, cited(unit));
}

/// Returns the columns of metrics that one of the listed trials has: the objectives, then others, the most important
/// ones first.
std::vector<const results::StudyColumn*> listed_metrics(const Study& study, const std::vector<std::size_t>& listed,
                                                        const results::StudyTable& table) {
  std::vector<std::string> names;
  for (const auto& objective : study.objectives) names.push_back(column_of(objective.metric));
  for (const std::string_view name : {"step_time", "peak_memory", "usd_per_step", "mfu", "tokens_per_s",
                                      "samples_per_s", "capex", "power", "lower_bound"})
    if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
  std::vector<const results::StudyColumn*> columns;
  for (const std::string& name : names) {
    const auto column = std::ranges::find(table.metrics, name, &results::StudyColumn::name);
    const auto is_known = [&](std::size_t row) { return !std::isnan(column->values[row]); };
    const bool has_tokens = !columns.empty() && columns.back()->name == "tokens_per_s";
    if (column == table.metrics.end() || std::ranges::none_of(listed, is_known)) continue;
    if (name == "samples_per_s" && has_tokens && study.objectives.front().metric != name) continue;
    columns.push_back(&*column);
  }
  return columns;
}

/// Returns the memory of the NPUs of a trial in bytes; 0 if it has no size.
double room_of(const StudyRun& run, std::size_t row) {
  const auto configuration = run.variants->read(settings_of(run.points[row]));
  return static_cast<double>(configuration.execution.room().count());
}

constexpr double tight_share = 0.9;  ///< share of the memory from which on a trial is marked

/// Returns the column of a metric. Uses of memory have its size beside them, and a mark where little is left.
FittedColumn metric_column(const StudyRun& run, const results::StudyColumn& metric,
                           const std::vector<std::size_t>& listed, bool& is_tight) {
  const bool is_memory = metric.name == "peak_memory";
  FittedColumn column{.head = results::title_of(metric.name)};
  for (const std::size_t row : listed) {
    const double value = metric.values[row];
    const double room = is_memory ? room_of(run, row) : 0;
    const bool is_marked = is_memory && room > 0 && value > tight_share * room;
    is_tight |= is_marked;
    column.cells.push_back(
        (is_memory ? results::memory_text(value, room) : results::metric_text(metric.name, metric.units, value)) +
        (is_marked ? "!" : ""));
  }
  return column;
}

/// Says which listed trial is the best one in each objective, the first of those that are alike.
std::string ends_of_front(const StudyRun& run, const std::vector<Row>& rows, const std::vector<std::size_t>& listed) {
  std::string text;
  for (std::size_t o = 0; o < run.study.objectives.size(); ++o) {
    const double sign = run.study.objectives[o].is_maximised ? -1 : 1;
    const auto cost = [&](std::size_t row) { return sign * objectives_of(run.study, rows[row].trial)[o]; };
    const auto best = std::ranges::min_element(listed, {}, cost);
    if (best != listed.end())
      text += fmt::format("{}best {}: trial {}", text.empty() ? "" : "; ",
                          results::title_of(run.study.objectives[o].metric), rows[*best].number);
  }
  return text;
}

bool is_too_long(const std::string& line) { return line.size() > most_fitted_characters; }

/// Takes columns out of a table that have one value in all rows, and adds them to a text of such values.
void take_out_alike(std::vector<FittedColumn>& columns, std::string& alike) {
  std::string taken;
  std::erase_if(columns, [&](const FittedColumn& column) {
    const bool is_alike = &column != &columns.front() && !column.is_optional &&
                          std::ranges::count(column.cells, column.cells.front()) == std::ssize(column.cells);
    if (is_alike) taken += fmt::format("{}{} {}", taken.empty() ? "" : ", ", column.head, column.cells.front());
    return is_alike;
  });
  alike = taken.empty() || alike.empty() ? taken + alike : fmt::format("{}, {}", taken, alike);
}

/// Prints trials with their most important metrics. A star marks those with a caveat.
void print_rows(const StudyRun& run, const std::vector<Row>& rows, const std::vector<std::size_t>& listed,
                const results::StudyTable& table) {
  std::vector<FittedColumn> columns(1, {.head = "trial"});
  for (const std::size_t row : listed)
    columns[0].cells.push_back(fmt::format("{}{}", rows[row].number, table.caveat[row].empty() ? "" : "*"));
  for (const auto& one : varied_names(run.study)) {
    auto& column = columns.emplace_back(FittedColumn{.head = cited(one, 40)});
    for (const std::size_t row : listed)
      column.cells.push_back(shortened_value(text_of(run.space, run.points[row], one)));
  }
  bool is_tight = false;
  const auto metrics = listed_metrics(run.study, listed, table);
  std::string alike;  // metrics of one value, but for objectives and uses of a memory that has a size
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    FittedColumn column = metric_column(run, *metrics[i], listed, is_tight);
    column.is_optional = i >= run.study.objectives.size() && metrics[i]->name != "peak_memory";
    const bool is_alike =
        listed.size() > 1 && std::ranges::count(column.cells, column.cells.front()) == std::ssize(listed);
    const bool is_plain =
        column.is_optional || (metrics[i]->name == "peak_memory" && i >= run.study.objectives.size() &&
                               column.cells.front().find(" of ") == std::string::npos);
    if (is_plain && is_alike)
      alike += fmt::format("{}{} {}", alike.empty() ? "" : ", ", column.head, column.cells.front());
    else
      columns.push_back(std::move(column));
  }
  std::size_t left_out = 0;
  auto lines = fitted_lines(columns, left_out);
  if (listed.size() > 1 && std::ranges::any_of(lines, is_too_long)) {
    take_out_alike(columns, alike);
    lines = fitted_lines(std::move(columns), left_out);
  }
  for (const std::string& line : lines) fmt::print("{}\n", line);
  if (run.study.objectives.size() > 1) fmt::print("{}\n", ends_of_front(run, rows, listed));
  if (!alike.empty()) fmt::print("of all of these: {}\n", alike);
  if (left_out > 0)
    fmt::print("({} left out: --csv and `orrery show results --format csv` have all)\n", counted(left_out, "column"));
  if (is_tight)
    fmt::print(
        "! takes more than {:.0f} % of the memory. Fragmentation and what software keeps for itself are not counted,\n"
        "  so it may not fit.\n",
        100 * tight_share);
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
  const auto fits = [](const Row& row) { return row.trial.status == TrialStatus::excluded; };
  const bool some_fit = std::ranges::any_of(rows, fits);  // what does not fit may miss constraints too
  for (std::size_t row = 0; row < rows.size(); ++row)
    if (const double miss = miss_of(run, row, rows[row].trial); miss < least && (!some_fit || fits(rows[row]))) {
      least = miss;
      nearest = row;
    }
  if (std::isinf(least)) return;
  fmt::print("\nThe nearest miss, by {}: trial {} ({})\n  {}: {}\n",
             least < 10 ? fmt::format("{:.3g} %", 100 * least) : fmt::format("a factor of {:.3g}", 1 + least),
             rows[nearest].number, values_text(run.space, run.points[nearest], varied_names(run.study)),
             name(rows[nearest].trial.status), cited(rows[nearest].trial.text));
}

}  // namespace

void print_columns(const Cells& lines) {
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

/// Returns the command that reads the study again, with what changes its base.
std::string command_of(const ExploreCommand& command) {
  std::string text = "orrery explore " + as_typed(command.file.string());
  for (const std::string& setting : command.overrides) text += " --set " + as_typed(setting);
  return text;
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
  if (writes_configurations(run.study, run.command))
    fmt::print("\nThe CONFIG.yaml of trial N: {}\n",
               std::filesystem::path(run.command.output).replace_extension(".trial-N.yaml").string());
  else
    fmt::print("\nThe CONFIG.yaml of a trial: {} --trial {}\n", command_of(run.command), table.best.front());
}

void print_points(const Study& study, const explore::Points& points, const explore::Funnel& funnel) {
  Cells lines(1, {"trial"});
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

}  // namespace orrery::study
