#include <malloc.h>

#include <algorithm>
#include <bit>
#include <chrono>
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
#include "orrery/explore/space.hpp"
#include "orrery/results/results.hpp"
#include "orrery/results/study.hpp"
#include "stop_request.hpp"
#include "study_table.hpp"
#include "study_trials.hpp"
#include "subcommands.hpp"
#include "tornado.hpp"
#include "trial_journal.hpp"

namespace orrery::app {
namespace {

using explore::Point;
using explore::Study;

constexpr std::uint64_t most_trials = 1'000'000;

/// Keeps memory that a trial has freed for the next one. By default the C library returns it to the system, which costs
/// a fifth of the time of small trials.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int most_bytes = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, most_bytes);
  mallopt(M_TRIM_THRESHOLD, most_bytes);
#endif
}

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

explore::Space space_of(const Study& study, const config::ExploreCommand& command) {
  require_own_npus(study);
  return {study, {{"npus", std::int64_t{base_npus(study, command)}}}};
}

/// Finds the points that the command asks for.
explore::Funnel find_points(const config::ExploreCommand& command, const explore::Space& space,
                            explore::Points& points) {
  const std::uint64_t wanted = command.limit.value_or(most_trials);
  const auto funnel = space.visit([&](const Point& point) {
    if (point.number >= most_trials && !command.limit && !command.trial)
      throw Error(ErrorCode::bad_input, {.file = command.file.string()},
                  fmt::format("more than {} legal configurations", most_trials), "fewer, or --limit");
    if (command.trial ? point.number == *command.trial : points.size() < wanted) points.add(point.number, point.choice);
    return !command.trial || points.empty();
  });
  if (command.trial && points.empty())
    throw Error(ErrorCode::usage, fmt::format("orrery explore: --trial {}: the study has {} legal configurations.",
                                              *command.trial, funnel.legal));
  return funnel;
}

/// Returns what the results of a study depend on: the program, and all texts that are read.
TrialJournal::Identity identity_of(const Study& study, const config::ExploreCommand& command,
                                   const explore::Points& points) {
  TrialJournal::Identity identity;
  const auto add = [&](const std::string& name, std::string_view text) {
    identity.emplace_back(name, mix_all(0, std::span<const char>(text)));
  };
  add("the program's revision", fmt::format("{} {}", version(), revision()));
  add(command.file.filename().string(), study.text);
  add("--set", fmt::format("{}", fmt::join(command.overrides, "\n")));
  if (points.empty()) return identity;
  const auto findings = config::examine(inputs_of(study, command, points[0]));
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

}  // namespace

void explore(const config::ExploreCommand& command, const std::string& command_line, parallel::Communicator& world) {
  heed_signals();
  keep_freed_memory();
  const auto stop_requested = stop_request(command.max_walltime_s, std::chrono::steady_clock::now());
  const Study study = agreed(world, [&] { return config::read_study(command.file); });
  const explore::Space space = agreed(world, [&] { return space_of(study, command); });
  explore::Points points(space);
  explore::Funnel funnel;
  world.agree([&] { funnel = find_points(command, space, points); });
  if (command.trial || command.list) {
    if (!world.is_root()) return;
    if (command.list) return print_points(study, points, funnel);
    return fmt::print("{}", config::read(inputs_of(study, command, points[0])).to_yaml());
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
  const StudyRun run{study, command, space, points, journal, stop_requested};
  auto [rows, extra] =
      study.strategy == explore::Strategy::bounded ? simulate_bounded(run, world) : simulate_all(run, world);
  auto table = table_of(run, rows, funnel);
  if (study.sensitivity && !command.no_sensitivity) {
    table.tornado = tornado(run, rows, world);
    if (study.strategy != explore::Strategy::bounded) table.main_effects = main_effects(study, rows, table);
  }
  table.command_line = command_line;
  table.extra = std::move(extra);
  table.inputs = {{"study.yaml", study.text}, {"configuration.yaml", read_text(study.base)}};
  const auto file = results::write_study(command.output, table, command.force, world);
  world.agree([&] {
    if (!world.is_root()) return;
    if (!command.csv.empty()) write_csv(command.csv, table);
    journal.remove();
    if (file != command.output)
      spdlog::warn("{} has appeared meanwhile and is kept: the trials are in {}", command.output.string(),
                   file.string());
    print_found(run, rows, table);
  });
}

}  // namespace orrery::app
