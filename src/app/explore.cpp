#include <malloc.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "agreed.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/base/mix_all.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/version.hpp"
#include "orrery/config/study.hpp"
#include "orrery/explore/ranking.hpp"
#include "orrery/explore/space.hpp"
#include "orrery/parallel/packing.hpp"
#include "orrery/results/results.hpp"
#include "orrery/results/study.hpp"
#include "stop_request.hpp"
#include "study_trials.hpp"
#include "subcommands.hpp"
#include "text_output.hpp"
#include "trial.hpp"
#include "trial_journal.hpp"

namespace orrery::app {
namespace {

using explore::Point;
using explore::Study;

constexpr std::array<std::string_view, 6> status_names{"done",    "excluded", "does-not-fit",
                                                       "refused", "stuck",    "ruled-out"};
constexpr std::uint64_t most_trials = 1'000'000;

/// Keeps memory that a trial has freed for the next one. By default the C library returns it to the system, which costs a
/// fifth of the time of small trials.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int most_bytes = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, most_bytes);
  mallopt(M_TRIM_THRESHOLD, most_bytes);
#endif
}

std::string_view name(TrialStatus status) { return status_names[static_cast<std::size_t>(status)]; }

/// Refuses a study that changes the size of the network and uses the `npus` of its base.
void require_own_npus(const Study& study) {
  const auto is_npus = [](const auto& named) { return named.name == "npus"; };
  if (std::ranges::any_of(study.parameters, is_npus) || std::ranges::any_of(study.derived, is_npus)) return;
  const auto uses_npus = [](const explore::Expression& expression) {
    return std::ranges::find(expression.names(), "npus") != expression.names().end();
  };
  if (std::ranges::none_of(study.constraints, uses_npus) &&
      std::ranges::none_of(study.derived, uses_npus, &explore::Derived::value))
    return;
  for (const auto& parameter : study.parameters) {
    const std::string_view key = parameter.key;
    const bool is_size = key.starts_with("system.network.dimensions") && key.ends_with(".size");
    if (is_size || key == "system" || key == "system.base" || key == "system.network" ||
        key == "system.network.dimensions")
      throw Error(ErrorCode::bad_input, parameter.place,
                  fmt::format("'{}' changes the number of NPUs, for which expressions have the name npus", key),
                  "a parameter or a derived value with the name npus");
  }
}

/// Returns the number of NPUs of the base configuration.
std::uint32_t base_npus(const Study& study, const config::ExploreCommand& command) {
  const auto configuration = config::read({.file = study.base, .overrides = command.overrides, .system_only = true});
  std::uint32_t npus = 1;
  for (const auto& dimension : configuration.dimensions) npus *= dimension.size;
  return npus;
}

/// Returns what the results of a study depend on: the program, and all texts that are read.
TrialJournal::Identity identity_of(const Study& study, const config::ExploreCommand& command,
                                   const std::vector<Point>& points) {
  TrialJournal::Identity identity;
  const auto add = [&](const std::string& name, std::string_view text) {
    identity.emplace_back(name, mix_all(0, std::span<const char>(text)));
  };
  add("the program's revision", fmt::format("{} {}", version(), revision()));
  add(command.file.filename().string(), study.text);
  add("--set", fmt::format("{}", fmt::join(command.overrides, "\n")));
  if (points.empty()) return identity;
  const auto findings = config::examine(inputs_of(study, command, points.front()));
  if (findings.configuration)
    for (const auto& [name, text] : findings.configuration->inputs) add(name, text);
  return identity;
}

/// Refuses ranks that have read different files. Collective.
void require_same(const TrialJournal::Identity& identity, parallel::Communicator& world) {
  std::uint64_t digest = 0;
  for (const auto& [name, value] : identity) digest = mix(digest, value);
  std::int64_t least = std::bit_cast<std::int64_t>(digest), most = least;
  world.minimum(std::span(&least, 1));
  world.maximum(std::span(&most, 1));
  world.agree([&] {
    if (world.is_root() && least != most)
      throw Error(ErrorCode::bad_input,
                  "the ranks have read different studies, configurations or programs. Do not "
                  "change files while ranks start, and give all machines the same ones.");
  });
}

std::string text_of(const Point& point, const std::string& name) {
  const auto known = point.names.find(name);
  return known == point.names.end() ? "" : explore::to_text(known->second);
}

/// Returns the names of the study, those of one value for all left out.
std::vector<std::string> varied_names(const Study& study) {
  std::vector<std::string> names;
  for (const auto& parameter : study.parameters)
    if (parameter.values.size() > 1) names.push_back(parameter.name);
  for (const auto& derived : study.derived) names.push_back(derived.name);
  return names;
}

std::vector<std::string> all_names(const Study& study) {
  std::vector<std::string> names;
  for (const auto& parameter : study.parameters) names.push_back(parameter.name);
  for (const auto& derived : study.derived) names.push_back(derived.name);
  return names;
}

results::StudyTable table_of(const Study& study, const std::vector<Row>& rows, const explore::Funnel& funnel) {
  results::StudyTable table;
  for (const auto& metric : explore::metrics())
    table.metrics.push_back({std::string(metric.name), std::string(metric.units), std::string(metric.description), {}});
  for (const std::string& one : all_names(study)) table.parameters.emplace_back(one, std::vector<std::string>());
  std::vector<std::vector<double>> objectives;
  if (study.strategy == explore::Strategy::bounded)
    table.metrics.push_back({"lower_bound", "s", "of the time of a step, without a simulation; 0: not known", {}});
  std::map<std::string, std::uint64_t> fallen;
  for (const Row& row : rows) {
    table.number.push_back(row.point.number);
    table.status.emplace_back(name(row.trial.status));
    table.error.push_back(row.trial.text);
    for (std::size_t i = 0; i < table.metrics.size(); ++i)
      table.metrics[i].values.push_back(i < row.trial.metrics.size() ? row.trial.metrics[i] : row.lower_bound);
    for (auto& [one, values] : table.parameters) values.push_back(text_of(row.point, one));
    auto& values = objectives.emplace_back();
    for (const auto& objective : study.objectives) {
      const auto which = std::ranges::find(explore::metrics(), objective.metric, &explore::MetricInfo::name);
      values.push_back(row.trial.status == TrialStatus::done
                           ? row.trial.metrics[static_cast<std::size_t>(which - explore::metrics().begin())]
                           : std::nan(""));
    }
    ++fallen[row.trial.status == TrialStatus::excluded ? fmt::format("excluded by {}", row.trial.text)
                                                       : std::string(name(row.trial.status))];
  }
  for (const std::size_t row : explore::best_of(objectives, study.objectives, study.keep))
    table.best.push_back(rows[row].point.number);
  table.funnel.emplace_back("combinations", funnel.raw);
  for (std::size_t i = 0; i < funnel.cut.size(); ++i)
    if (funnel.cut[i] > 0)
      table.funnel.emplace_back(fmt::format("cut by {}", study.constraints[i].text()), funnel.cut[i]);
  if (funnel.alike > 0) table.funnel.emplace_back("alike: a parameter does not apply", funnel.alike);
  table.funnel.emplace_back("legal", funnel.legal);
  for (const auto& [reason, count] : fallen) table.funnel.emplace_back(reason, count);
  return table;
}

void write_csv(const std::filesystem::path& path, const results::StudyTable& table) {
  const auto quoted = [](const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos) return text;
    std::string inner;
    for (const char c : text) inner.append(c == '"' ? 2 : 1, c);
    return fmt::format("\"{}\"", inner);
  };
  TextOutput output(path);
  std::vector<std::string> cells{"number", "status"};
  for (const auto& [one, values] : table.parameters) cells.push_back(quoted(one));
  for (const auto& metric : table.metrics) cells.push_back(fmt::format("{} [{}]", metric.name, metric.units));
  cells.emplace_back("error");
  output.write(fmt::format("{}\n", fmt::join(cells, ",")));
  for (std::size_t row = 0; row < table.number.size(); ++row) {
    cells = {fmt::format("{}", table.number[row]), table.status[row]};
    for (const auto& [one, values] : table.parameters) cells.push_back(quoted(values[row]));
    for (const auto& metric : table.metrics)
      cells.push_back(std::isnan(metric.values[row]) ? "" : fmt::format("{}", metric.values[row]));
    cells.push_back(quoted(table.error[row]));
    output.write(fmt::format("{}\n", fmt::join(cells, ",")));
  }
  output.commit();
}

/// Prints a table with columns as wide as their texts.
void print_columns(const std::vector<std::vector<std::string>>& lines) {
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

void print_found(const Study& study, const std::vector<Row>& rows, const results::StudyTable& table,
                 const config::ExploreCommand& command) {
  for (const auto& [reason, count] : table.funnel) fmt::print("{:>12}  {}\n", count, cited(reason));
  if (table.best.empty())
    throw Error(ErrorCode::bad_input, {.file = command.file.string()},
                fmt::format("no configuration of {} is left, for the reasons that stand above", table.number.size()),
                "one that fits and keeps all constraints",
                fmt::format("{} has the reason of each.", command.output.string()));
  fmt::print("\n{}\n", study.objectives.size() == 1 ? "The best, the first one first:" : "The Pareto front:");
  const auto names = varied_names(study);
  const auto metrics_of = [&](std::uint64_t number) { return rows[number].trial.metrics; };
  std::vector<std::vector<std::string>> lines(1, {"trial"});
  for (const auto& one : names) lines[0].push_back(cited(one, 40));
  std::vector<std::size_t> known;  // metrics that one of the trials has
  for (std::size_t i = 0; i < explore::metrics().size(); ++i)
    if (std::ranges::any_of(table.best, [&](auto number) { return !std::isnan(metrics_of(number)[i]); }))
      known.push_back(i);
  for (const std::size_t i : known) lines[0].emplace_back(explore::metrics()[i].name);
  for (const std::uint64_t number : table.best) {
    auto& line = lines.emplace_back(1, fmt::format("{}", number));
    for (const auto& one : names) line.push_back(cited(text_of(rows[number].point, one), 40));
    for (const std::size_t i : known) {
      const double metric = metrics_of(number)[i];
      line.push_back(std::isnan(metric) ? "-" : fmt::format("{:.5g}", metric));
    }
  }
  print_columns(lines);
  fmt::print("\nThe CONFIG.yaml of a trial: orrery explore {} --trial {}\n", command.file.string(), table.best.front());
}

/// Prints the points without simulating them.
void print_points(const Study& study, const std::vector<Point>& points, const explore::Funnel& funnel) {
  std::vector<std::vector<std::string>> lines(1, {"trial"});
  for (const auto& one : all_names(study)) lines[0].push_back(cited(one, 40));
  for (const Point& point : points) {
    auto& line = lines.emplace_back(1, fmt::format("{}", point.number));
    for (const auto& one : all_names(study)) line.push_back(cited(text_of(point, one), 40));
  }
  print_columns(lines);
  fmt::print("{} of {} combinations are legal\n", funnel.legal, funnel.raw);
}

}  // namespace

void explore(const config::ExploreCommand& command, const std::string& command_line, parallel::Communicator& world) {
  heed_signals();
  keep_freed_memory();
  const auto stop_requested = stop_request(command.max_walltime_s, std::chrono::steady_clock::now());
  const Study study = agreed(world, [&] { return config::read_study(command.file); });
  explore::Funnel funnel;
  std::vector<Point> points;
  const std::uint64_t wanted = command.limit.value_or(most_trials);
  world.agree([&] {
    require_own_npus(study);
    funnel = explore::visit_points(study, base_npus(study, command), [&](const Point& point) {
      if (point.number >= most_trials && !command.limit && !command.trial)
        throw Error(ErrorCode::bad_input, {.file = command.file.string()},
                    fmt::format("more than {} legal configurations", most_trials), "fewer, or --limit");
      if (command.trial ? point.number == *command.trial : points.size() < wanted) points.push_back(point);
      return !command.trial || points.empty();
    });
    if (command.trial && points.empty())
      throw Error(ErrorCode::usage, fmt::format("orrery explore: --trial {}: the study has {} legal configurations.",
                                                *command.trial, funnel.legal));
  });
  if (command.trial || command.list) {
    if (!world.is_root()) return;
    if (command.list) return print_points(study, points, funnel);
    return fmt::print("{}", config::read(inputs_of(study, command, points.front())).to_yaml());
  }
  world.agree([&] {
    if (!world.is_root()) return;
    check_output(command.output, command.force);
    if (!command.csv.empty()) check_output(command.csv, command.force);
  });
  const auto identity = identity_of(study, command, points);
  require_same(identity, world);
  TrialJournal journal(command.output, identity, world);
  const std::size_t num_known = journal.known().size();
  if (num_known > 0 && world.is_root())
    spdlog::info("{} of {} configurations are done already, by jobs that ended early", num_known, points.size());
  const StudyRun run{study, command, points, journal, stop_requested};
  const auto [rows, extra] =
      study.strategy == explore::Strategy::bounded ? simulate_bounded(run, world) : simulate_all(run, world);
  auto table = table_of(study, rows, funnel);
  table.command_line = command_line;
  table.extra = extra;
  table.inputs = {{"study.yaml", study.text}, {"configuration.yaml", read_text(study.base)}};
  const auto file = results::write_study(command.output, table, command.force, world);
  world.agree([&] {
    if (!world.is_root()) return;
    if (!command.csv.empty()) write_csv(command.csv, table);
    journal.remove();
    if (file != command.output)
      spdlog::warn("{} has appeared meanwhile and is kept: the trials are in {}", command.output.string(),
                   file.string());
    print_found(study, rows, table, command);
  });
}

}  // namespace orrery::app
