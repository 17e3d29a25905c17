#include "study_table.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/base/text.hpp"
#include "orrery/base/text_output.hpp"
#include "orrery/explore/ranking.hpp"
#include "orrery/explore/sensitivity.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/results/metric_registry.hpp"

namespace orrery::study {
namespace {

using explore::Study;

constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

constexpr std::array<std::string_view, 8> status_names{"done",  "excluded",  "does-not-fit", "refused",
                                                       "stuck", "ruled-out", "failed",       "timed-out"};

std::string_view units_of(std::string_view path) {
  return results::units_of_figure(path.substr(std::string_view("/metrics/").size()));
}

/// Gives a column its numbers, if all texts are numbers of one unit.
void add_numbers(results::StudyParameter& parameter) {
  std::string_view units;
  for (const std::string& text : parameter.values.texts()) {
    const double number = explore::as_real(explore::value_of(text));
    if (!text.empty() && std::isnan(number)) {
      parameter.numbers.clear();
      return;
    }
    if (const auto own = explore::si_unit_of(text); units.empty() || units == "1") units = own;
    parameter.numbers.push_back(number);
  }
  parameter.units = units.empty() ? "1" : units;
}

void add_rows(const StudyRun& run, const std::vector<Row>& rows, results::StudyTable& table) {
  std::vector<std::size_t> columns;  // of Trial::metrics
  for (const std::string& metric : shown_metrics(run.study)) columns.push_back(index_of_metric(metric));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Trial& trial = rows[i].trial;
    table.number.push_back(rows[i].number);
    table.status.add(std::string(name(trial.status)));
    table.error.add(trial.text);
    for (std::size_t metric = 0; metric < table.metrics.size(); ++metric)
      table.metrics[metric].values.push_back(
          metric < columns.size()
              ? (columns[metric] < trial.metrics.size() ? trial.metrics[columns[metric]] : not_known)
              : rows[i].lower_bound);
    const explore::Point point = run.points[i];
    for (auto& parameter : table.parameters) parameter.values.add(text_of(run.space, point, parameter.name));
  }
  for (auto& parameter : table.parameters) add_numbers(parameter);
}

void add_funnel(const StudyRun& run, const std::vector<Row>& rows, const explore::Funnel& funnel,
                results::StudyTable& table) {
  table.funnel = counts_of(run.study, funnel);
  if (rows.size() < funnel.legal && (run.command.limit || run.command.parts.shard))
    table.funnel.emplace_back(run.command.parts.shard ? "of other shards" : "left out by --limit",
                              funnel.legal - rows.size());
  std::map<std::string, std::uint64_t> fallen;
  for (const Row& row : rows)
    ++fallen[row.trial.status == TrialStatus::excluded ? fmt::format("excluded by {}", row.trial.text)
                                                       : std::string(name(row.trial.status))];
  for (const auto& [reason, count] : fallen) table.funnel.emplace_back(reason, count);
}

/// Returns what the rules say of a trial that is done; empty for nothing.
std::string caveat_of(const StudyRun& run, std::size_t position, const Trial& trial) {
  if (trial.status != TrialStatus::done || run.study.caveats.empty()) return {};
  const explore::Names names = names_of(run.study, run.points[position], trial);
  std::string texts;
  for (const explore::Caveat& caveat : run.study.caveats) {
    const bool is_known =
        std::ranges::all_of(caveat.when.names(), [&](const auto& one) { return names.contains(one); });
    if (is_known && caveat.when.holds(names)) texts += (texts.empty() ? "" : "; ") + caveat.text;
  }
  return texts;
}

/// Adds the marks of trials that rules mark.
void add_caveats(const StudyRun& run, const std::vector<Row>& rows, results::StudyTable& table) {
  for (std::size_t i = 0; i < rows.size(); ++i) table.caveat.add(caveat_of(run, i, rows[i].trial));
}

/// Drops the metrics of campaigns and of requests where no trial has one, and those of steps where requests are served.
void drop_without_values(bool serves, results::StudyTable& table) {
  std::erase_if(table.metrics, [&](const results::StudyColumn& column) {
    const results::MetricInfo* const info = results::find_metric(column.name);
    return info != nullptr && info->origin != results::MetricInfo::Origin::bound &&
           (info->origin != results::MetricInfo::Origin::step || serves) &&
           std::ranges::all_of(column.values, [](double value) { return std::isnan(value); });
  });
}

}  // namespace

std::vector<std::string> shown_metrics(const Study& study) {
  std::vector<std::string> names;
  for (const auto& metric : results::study_metrics()) names.emplace_back(metric.name);
  for (std::string& path : explore::paths_of(study)) names.push_back(std::move(path));
  return names;
}

std::string column_of(std::string_view metric) {
  std::string column(metric.starts_with('/') ? metric.substr(1) : metric);
  std::ranges::replace(column, '/', '_');
  return column;
}

std::vector<std::pair<std::string, std::uint64_t>> counts_of(const Study& study, const explore::Funnel& funnel) {
  std::vector<std::pair<std::string, std::uint64_t>> counts;
  const bool is_sampled = explore::draws_samples(study.strategy);
  counts.emplace_back(is_sampled ? "draws" : "combinations", funnel.raw);
  for (std::size_t i = 0; i < funnel.cut.size(); ++i)
    if (funnel.cut[i] > 0) counts.emplace_back(fmt::format("cut by {}", study.constraints[i].text()), funnel.cut[i]);
  if (funnel.alike > 0)
    counts.emplace_back(is_sampled ? "drawn before" : "alike: a parameter does not apply", funnel.alike);
  counts.emplace_back("legal", funnel.legal);
  return counts;
}

std::string_view name(TrialStatus status) { return status_names[static_cast<std::size_t>(status)]; }

TrialStatus status_of(std::string_view name) {
  const auto* const found = std::ranges::find(status_names, name);
  if (found == status_names.end())
    throw Error(ErrorCode::bad_input,
                fmt::format("found the status '{}'; expected one of {}", cited(name), fmt::join(status_names, ", ")));
  return static_cast<TrialStatus>(found - status_names.begin());
}

std::vector<std::string> all_names(const Study& study) {
  std::vector<std::string> names;
  for (const auto& parameter : study.parameters) names.push_back(parameter.name);
  for (const auto& derived : study.derived) names.push_back(derived.name);
  return names;
}

std::string text_of(const explore::Space& space, const explore::Point& point, const std::string& name) {
  const auto& parameters = space.study().parameters;
  const auto parameter = std::ranges::find(parameters, name, &explore::Parameter::name);
  if (parameter != parameters.end()) {
    const auto position = static_cast<std::size_t>(parameter - parameters.begin());
    const std::uint32_t chosen = point.choice[position];
    return chosen == explore::otherwise ? parameter->otherwise.value_or("") : space.text(position, chosen);
  }
  const auto known = point.names.find(name);
  if (known == point.names.end()) return "";
  const auto derived = std::ranges::find(space.study().derived, name, &explore::Derived::name);
  if (derived == space.study().derived.end() || derived->unit.empty()) return explore::to_text(known->second);
  return explore::to_text_in(derived->unit, known->second);
}

std::string values_text(const explore::Space& space, const explore::Point& point,
                        const std::vector<std::string>& names) {
  std::string values;
  for (const std::string& name : names)
    values +=
        fmt::format("{}{} = {}", values.empty() ? "" : ", ", cited(name, 40), cited(text_of(space, point, name), 40));
  return values;
}

std::vector<double> objectives_of(const Study& study, const Trial& trial) {
  std::vector<double> values;
  for (const auto& objective : study.objectives)
    values.push_back(trial.status == TrialStatus::done ? metric_of(trial, objective.metric) : not_known);
  return values;
}

std::vector<std::size_t> best_rows(const Study& study, const std::vector<Row>& rows) {
  std::vector<std::vector<double>> objectives;
  std::vector<std::size_t> done;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].trial.status != TrialStatus::done) continue;
    done.push_back(i);
    objectives.push_back(objectives_of(study, rows[i].trial));
  }
  std::vector<std::size_t> best;
  for (const std::size_t row : explore::best_of(objectives, study.objectives, study.keep)) best.push_back(done[row]);
  return best;
}

results::StudyTable table_of(const StudyRun& run, const std::vector<Row>& rows, const explore::Funnel& funnel) {
  const Study& study = run.study;
  results::StudyTable table;
  const auto add = [&](const results::MetricInfo& metric) {
    table.metrics.push_back({std::string(metric.name), std::string(metric.units), std::string(metric.description), {}});
  };
  std::ranges::for_each(results::study_metrics(), add);
  for (const std::string& path : explore::paths_of(study))
    table.metrics.push_back({column_of(path), std::string(units_of(path)), path + " of the results", {}});
  if (study.strategy == explore::Strategy::bounded) add(*results::find_metric("lower_bound"));
  for (const std::string& one : all_names(study)) table.parameters.emplace_back().name = one;
  add_rows(run, rows, table);
  drop_without_values(run.serves, table);
  add_caveats(run, rows, table);
  for (const auto& objective : study.objectives)
    table.objectives.emplace_back(column_of(objective.metric), objective.is_maximised);
  for (const auto& constraint : study.constraints) table.constraints.push_back(constraint.text());
  table.attributes = {{"strategy", std::string(explore::name(study.strategy))},
                      {"keep", fmt::format("{}", study.keep)}};
  if (explore::draws_samples(study.strategy)) {
    table.attributes.emplace_back("samples", fmt::format("{}", study.sampling.samples));
    table.attributes.emplace_back("seed", fmt::format("{}", study.sampling.seed));
  }
  for (const std::size_t row : best_rows(study, rows)) table.best.push_back(rows[row].number);
  add_funnel(run, rows, funnel, table);
  return table;
}

std::vector<std::pair<std::string, double>> main_effects(const Study& study, const std::vector<Row>& rows,
                                                         const results::StudyTable& table) {
  std::vector<double> metric;
  std::vector<std::size_t> done;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].trial.status != TrialStatus::done) continue;
    done.push_back(i);
    metric.push_back(objectives_of(study, rows[i].trial).front());
  }
  std::vector<std::pair<std::string, double>> effects;
  for (std::size_t p = 0; p < study.parameters.size(); ++p) {
    if (table.parameters[p].values.texts().size() < 2) continue;
    std::vector<std::string> values;
    for (const std::size_t row : done) values.push_back(table.parameters[p].values[row]);
    const double effect = explore::main_effect(values, metric);
    if (!std::isnan(effect)) effects.emplace_back(study.parameters[p].name, effect);
  }
  return effects;
}

void write_csv(const std::filesystem::path& path, const results::StudyTable& table) {
  TextOutput output(path);
  std::vector<std::string> cells{"number", "status"};
  for (const auto& parameter : table.parameters) cells.push_back(csv_cell(parameter.name));
  for (const auto& metric : table.metrics) cells.push_back(csv_cell(fmt::format("{} [{}]", metric.name, metric.units)));
  cells.insert(cells.end(), {"error", "caveat"});
  output.write(fmt::format("{}\n", fmt::join(cells, ",")));
  for (std::size_t row = 0; row < table.number.size(); ++row) {
    cells = {fmt::format("{}", table.number[row]), table.status[row]};
    for (const auto& parameter : table.parameters)  // numbers in SI units
      cells.push_back(csv_cell(explore::to_text(explore::value_of(parameter.values[row]))));
    for (const auto& metric : table.metrics)
      cells.push_back(std::isnan(metric.values[row]) ? "" : fmt::format("{}", metric.values[row]));
    cells.push_back(csv_cell(table.error[row]));
    cells.push_back(csv_cell(table.caveat[row]));
    output.write(fmt::format("{}\n", fmt::join(cells, ",")));
  }
  output.commit();
}

}  // namespace orrery::study
