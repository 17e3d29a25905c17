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
#include "dry_run.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/base/mix_all.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/version.hpp"
#include "orrery/config/study.hpp"
#include "orrery/explore/samples.hpp"
#include "orrery/explore/space.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/results/results.hpp"
#include "orrery/results/study.hpp"
#include "shards.hpp"
#include "stop_request.hpp"
#include "study_table.hpp"
#include "study_trials.hpp"
#include "subcommands.hpp"
#include "tornado.hpp"
#include "trial_journal.hpp"

namespace orrery::app {
namespace {

using explore::Choice;
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

/// Refuses a path of results that there is not.
void require_known_paths(const Study& study) {
  const auto figures = results::figure_names();
  for (const std::string& path : explore::paths_of(study))
    if (std::ranges::find(figures, std::string_view(path).substr(std::string_view("/metrics/").size())) ==
        figures.end())
      throw Error(ErrorCode::bad_input, {.file = study.base.string()},
                  fmt::format("the study names `{}`, which results do not have", cited(path)),
                  fmt::format("/metrics/ and one of {}", fmt::join(figures, ", ")));
}

/// Refuses keys in back quotes that the configuration does not have, but for those of the default rules.
void require_known_keys(const Study& study, const std::vector<std::string>& keys, const explore::Names& known) {
  const auto refuse = [&](const explore::Expression& expression) {
    for (const std::string& key : expression.names())
      if (!known.contains(key) && std::ranges::find(keys, key) != keys.end())
        throw Error(ErrorCode::bad_input, expression.place(),
                    fmt::format("'{}' names the key `{}`, which the configuration does not have",
                                cited(expression.text()), cited(key)),
                    "a key with one value", "'orrery show keys' prints all keys.");
  };
  for (const auto& parameter : study.parameters)
    if (parameter.when) refuse(*parameter.when);
  for (const auto& derived : study.derived) refuse(derived.value);
  for (const auto& constraint : study.constraints) refuse(constraint);
  for (const auto& caveat : study.caveats)
    if (!caveat.is_default) refuse(caveat.when);
}

/// Returns the combinations of a study, with what the base says.
explore::Space space_of(const Study& study, const config::ExploreCommand& command) {
  require_own_npus(study);
  require_known_paths(study);
  explore::Names given{{"npus", std::int64_t{base_npus(study, command)}}};
  if (const auto keys = explore::keys_of_base(study); !keys.empty()) {
    const auto texts = config::read_values(common_inputs(study, command), keys);
    for (const auto& [key, text] : texts) given[key] = explore::value_of(text);
    require_known_keys(study, keys, given);
  }
  return {study, std::move(given)};
}

/// Says whether the job at hand is to simulate a point.
bool is_wanted(std::uint64_t number, const config::ExploreCommand& command) {
  if (command.trial) return number == *command.trial;
  if (command.limit && number >= *command.limit) return false;
  return !command.shard || number % command.shard->count == command.shard->index;
}

/// Visits all combinations. Returns how many fall to what, the points that the job at hand is to simulate, and the
/// first one of all.
explore::Funnel find_combinations(const config::ExploreCommand& command, const explore::Space& space,
                                  explore::Points& points, Choice& first) {
  return space.visit([&](const Point& point) {
    if (point.number == 0) first = point.choice;
    if (point.number >= most_trials && !command.limit && !command.trial)
      throw Error(ErrorCode::bad_input, {.file = command.file.string()},
                  fmt::format("more than {} legal configurations", most_trials), "fewer, or --limit");
    if (is_wanted(point.number, command)) points.add(point.number, point.choice);
    return !command.trial || points.empty();
  });
}

/// Draws samples. Returns the same as `find_combinations`.
explore::Funnel draw_samples(const config::ExploreCommand& command, explore::Sampler& sampler,
                             const explore::Space& space, explore::Points& points, Choice& first) {
  explore::Funnel funnel;
  explore::Points all(space);
  sampler.draw(all, funnel);
  first.assign(all.choice(0).begin(), all.choice(0).end());
  for (std::size_t i = 0; i < all.size(); ++i)
    if (const auto choice = all.choice(i); is_wanted(i, command)) points.add(i, Choice(choice.begin(), choice.end()));
  return funnel;
}

/// Returns what the results of a study depend on: the program, and all texts that are read.
TrialJournal::Identity identity_of(const Study& study, const config::ExploreCommand& command,
                                   const explore::Space& space, const Choice& first) {
  TrialJournal::Identity identity;
  const auto add = [&](const std::string& name, std::string_view text) {
    identity.emplace_back(name, mix_all(0, std::span<const char>(text)));
  };
  add("the program's revision", fmt::format("{} {}", version(), revision()));
  add(command.file.filename().string(), study.text);
  add("--set", fmt::format("{}", fmt::join(command.overrides, "\n")));
  for (const auto& parameter : study.parameters)
    for (const std::string& value : parameter.values)
      if (!parameter.key.empty() && std::filesystem::is_regular_file(value)) add(value, read_text(value));
  if (first.empty()) return identity;
  const auto findings = config::examine(inputs_of(study, command, space.at(first).value()));
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

/// Simulates further samples around the best ones. Collective.
void refine(const StudyRun& run, explore::Sampler& sampler, explore::Points& points, explore::Funnel& funnel,
            StudyTrials& found, parallel::Communicator& world) {
  for (std::uint32_t round = 1; round <= run.study.sampling.rounds; ++round) {
    auto around = best_rows(run.study, found.rows);
    world.broadcast(around, Rank(0));
    const std::size_t first = points.size();
    world.agree([&] { sampler.refine(round, around, points, funnel); });
    simulate_from(first, run, found, world);
  }
}

/// Returns the name of a file beside another one.
std::filesystem::path beside(const std::filesystem::path& output, const std::string& ending) {
  std::filesystem::path file = output;
  return file.replace_extension(ending);
}

/// Simulates listed trials again, each on one rank, and keeps their results. Collective.
void keep_results(const StudyRun& run, const std::vector<Row>& rows, parallel::Communicator& world) {
  std::vector<std::size_t> kept;
  if (run.command.keep_results == config::KeptResults::top) kept = best_rows(run.study, rows);
  if (run.command.keep_results == config::KeptResults::all)
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].trial.status == TrialStatus::done) kept.push_back(i);
  world.broadcast(kept, Rank(0));
  world.agree([&] {
    const auto alone = parallel::make_serial();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (i % static_cast<std::size_t>(world.size()) != static_cast<std::size_t>(world.rank().value())) continue;
      const Point point = run.points[kept[i]];
      auto inputs = inputs_of(run.study, run.command, point);
      const auto file = beside(run.command.output, fmt::format(".trial-{}.h5", point.number));
      inputs.overrides.insert(inputs.overrides.end(),
                              {fmt::format("run.output=\"{}\"", std::filesystem::absolute(file).string()),
                               "run.quiet=true", fmt::format("run.fold={}", run.study.fold), "run.force=true"});
      app::run({std::move(inputs)}, "orrery explore --keep-results", *alone);
    }
  });
}

/// Writes the configurations of the trials that are listed beside the output, on rank 0. A file that exists without
/// --force stays.
void write_configurations(const StudyRun& run, const std::vector<Row>& rows) {
  for (const std::size_t row : best_rows(run.study, rows)) {
    const auto file = beside(run.command.output, fmt::format(".trial-{}.yaml", rows[row].number));
    const std::string text = config::read(inputs_of(run.study, run.command, run.points[row])).to_yaml();
    if (!run.command.force && std::filesystem::exists(file) && read_text(file) != text) {
      spdlog::warn("{} exists and is kept, because --force is not given", file.string());
      continue;
    }
    PartialFile partial(file);
    partial.write(text);
    partial.commit();
  }
}

/// Checks that files can be written. Collective.
void check_outputs_of(const config::ExploreCommand& command, parallel::Communicator& world) {
  world.agree([&] {
    if (!world.is_root()) return;
    check_output(command.output, command.force);
    if (!command.csv.empty()) check_output(command.csv, command.force);
  });
}

/// Simulates a study and writes what was found. Collective.
void simulate_study(const StudyRun& run, explore::Sampler& sampler, explore::Points& points, explore::Funnel& funnel,
                    const TrialJournal::Identity& identity, const std::string& command_line,
                    parallel::Communicator& world) {
  const Study& study = run.study;
  auto found = study.strategy == explore::Strategy::bounded ? simulate_bounded(run, world) : simulate_all(run, world);
  if (!run.command.shard) refine(run, sampler, points, funnel, found, world);
  auto table = table_of(run, found.rows, funnel);
  if (study.sensitivity && !run.command.no_sensitivity && !run.command.shard) {
    table.tornado = tornado(run, found.rows, world);
    if (study.strategy != explore::Strategy::bounded) table.main_effects = main_effects(study, found.rows, table);
  }
  keep_results(run, found.rows, world);
  table.command_line = command_line;
  table.extra = std::move(found.extra);
  table.inputs = {{"study.yaml", study.text}, {"configuration.yaml", read_text(study.base)}};
  table.identity = identity;
  if (run.command.shard) table.shard = fmt::format("{}/{}", run.command.shard->index, run.command.shard->count);
  const auto file = results::write_study(run.command.output, table, run.command.force, world);
  world.agree([&] {
    if (!world.is_root()) return;
    if (!run.command.csv.empty()) write_csv(run.command.csv, table);
    if (run.command.write_configurations) write_configurations(run, found.rows);
    run.journal.remove();
    if (file != run.command.output)
      spdlog::warn("{} has appeared meanwhile and is kept: the trials are in {}", run.command.output.string(),
                   file.string());
    print_found(run, found.rows, table);
  });
}

}  // namespace

void explore(const config::ExploreCommand& command, const std::string& command_line, parallel::Communicator& world) {
  heed_signals();
  keep_freed_memory();
  const auto stop_requested = stop_request(command.max_walltime_s, std::chrono::steady_clock::now());
  const Study study = agreed(world, [&] { return config::read_study(command.file); });
  explore::Space space = agreed(world, [&] { return space_of(study, command); });
  explore::Sampler sampler(space);
  explore::Points points(space);
  explore::Funnel funnel;
  Choice first;
  world.agree([&] {
    funnel = explore::draws_samples(study.strategy) ? draw_samples(command, sampler, space, points, first)
                                                    : find_combinations(command, space, points, first);
    if (command.trial && points.empty())
      throw Error(ErrorCode::usage, fmt::format("orrery explore: --trial {}: the study has {} legal configurations.",
                                                *command.trial, funnel.legal));
  });
  if (command.trial || command.list) {
    if (!world.is_root()) return;
    if (command.list) return print_points(study, points, funnel);
    return fmt::print("{}", config::read(inputs_of(study, command, points[0])).to_yaml());
  }
  if (command.dry_run) return dry_run(study, command, points, funnel, world);
  check_outputs_of(command, world);
  const auto identity = identity_of(study, command, space, first);
  require_same(identity, world);
  TrialJournal journal(command.output, identity, world);
  if (!command.merge.empty())
    journal.adopt(agreed(world, [&] { return read_shards(command.merge, identity, points); }));
  const std::size_t num_known = journal.known().size();
  if (num_known > 0 && world.is_root())
    spdlog::info("{} of {} configurations are done already, by {}", num_known, points.size(),
                 command.merge.empty() ? "jobs that ended early" : "shards");
  const StudyRun run{study, command, space, points, journal, stop_requested};
  simulate_study(run, sampler, points, funnel, identity, command_line, world);
}

}  // namespace orrery::app
