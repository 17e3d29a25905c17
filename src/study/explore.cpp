#include <malloc.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include "dry_run.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/mix.hpp"
#include "orrery/base/mix_all.hpp"
#include "orrery/base/text.hpp"
#include "orrery/base/version.hpp"
#include "orrery/config/changes.hpp"
#include "orrery/config/serving.hpp"
#include "orrery/config/study.hpp"
#include "orrery/explore/samples.hpp"
#include "orrery/explore/space.hpp"
#include "orrery/results/figures.hpp"
#include "orrery/results/results.hpp"
#include "orrery/results/study.hpp"
#include "orrery/run/agreed.hpp"
#include "orrery/study/explore.hpp"
#include "shards.hpp"
#include "study_checks.hpp"
#include "study_outputs.hpp"
#include "study_table.hpp"
#include "study_trials.hpp"
#include "tornado.hpp"
#include "trial_journal.hpp"

namespace orrery::study {
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

/// Says whether the job at hand is to simulate a point.
bool is_wanted(std::uint64_t number, const ExploreCommand& command) {
  if (command.trial) return number == *command.trial;
  if (command.limit && number >= *command.limit) return false;
  return !command.parts.shard || number % command.parts.shard->count == command.parts.shard->index;
}

/// The points of a study, as the job at hand needs them.
struct FoundPoints {
  explore::Points& wanted;  ///< points that the job is to simulate
  Specimens& specimens;     ///< specimens of all points
  Choice first;             ///< choice of the first of all points
};

/// Visits all combinations. Returns how many fall to what.
explore::Funnel find_combinations(const ExploreCommand& command, const explore::Space& space, FoundPoints& points) {
  return space.visit([&](const Point& point) {
    if (point.number == 0) points.first = point.choice;
    if (point.number >= most_trials && !command.limit && !command.trial)
      throw Error(ErrorCode::bad_input, {.file = command.file.string()},
                  fmt::format("more than {} legal configurations", most_trials), "fewer, or --limit");
    points.specimens.add(point.choice);
    if (is_wanted(point.number, command)) points.wanted.add(point.number, point.choice);
    return !command.trial || points.wanted.empty();
  });
}

/// Draws samples. Returns the same as `find_combinations`.
explore::Funnel draw_samples(const ExploreCommand& command, explore::Sampler& sampler, const explore::Space& space,
                             FoundPoints& points) {
  explore::Funnel funnel;
  explore::Points all(space);
  sampler.draw(all, funnel);
  points.first.assign(all.choice(0).begin(), all.choice(0).end());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto chosen = all.choice(i);
    const Choice choice(chosen.begin(), chosen.end());
    points.specimens.add(choice);
    if (is_wanted(i, command)) points.wanted.add(i, choice);
  }
  return funnel;
}

/// Refuses what is wrong in all configurations, before anything is simulated.
void require_sound(const ExploreCommand& command, const explore::Space& space, const Specimens& specimens) {
  require_readable(space, command, specimens, [&](const auto& visit) {
    if (!explore::draws_samples(space.study().strategy)) {
      space.visit(visit);
      return;
    }
    for (const Choice& choice : specimens.choices())
      if (!visit(space.at(choice).value())) return;
  });
  require_prices(space, command, specimens);
}

/// Returns what a user calls a text that a configuration is read from: its file, or the key that names the file.
std::string name_for_users(const std::string& input, const Study& study) {
  if (input == "configuration.yaml") return study.base.filename().string();
  std::string_view file = input;
  std::string of;
  for (; file.starts_with("base."); file.remove_prefix(std::string_view("base.").size())) of += "the base of ";
  for (const auto& [name, key] : {std::pair<std::string_view, std::string_view>{"system.yaml", "system"},
                                  {"stack.yaml", "stack"},
                                  {"model.yaml", "workload.model"},
                                  {"cost.yaml", "cost"},
                                  {"perturbation.yaml", "perturbation"}})
    if (file == name) return fmt::format("{}the file that `{}` names", of, key);
  return input;
}

/// Returns the options by which a job asks for some of the trials only.
TrialJournal::Request request_of(const ExploreCommand& command) {
  TrialJournal::Request request;
  if (command.limit) request["--limit"] = fmt::format("{}", *command.limit);
  if (const auto& shard = command.parts.shard) request["--shard"] = fmt::format("{}/{}", shard->index, shard->count);
  return request;
}

/// Returns what the results of a study depend on: the program, and all texts that are read.
TrialJournal::Identity identity_of(const Study& study, const ExploreCommand& command, const explore::Space& space,
                                   const Choice& first) {
  TrialJournal::Identity identity;
  const auto add = [&](const std::string& name, std::string_view text) {
    const std::uint64_t digest = digest_of(text);
    const auto same = std::ranges::find(identity, name, &std::pair<std::string, std::uint64_t>::first);
    if (same == identity.end())
      identity.emplace_back(name, digest);
    else
      same->second = mix(same->second, digest);
  };
  add("the program", program());
  add(command.file.filename().string(), study.text);
  add("--set", fmt::format("{}", fmt::join(command.overrides, "\n")));
  for (const auto& parameter : study.parameters)
    for (const std::string& value : parameter.values)
      if (!parameter.key.empty() && std::filesystem::is_regular_file(value)) add(value, read_text(value));
  if (first.empty()) return identity;
  const auto findings = config::examine(inputs_of(study, command, space.at(first).value()));
  if (findings.configuration)
    for (const auto& [name, text] : findings.configuration->inputs) add(name_for_users(name, study), text);
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

/// Simulates a study and writes what was found. Collective.
void simulate_study(const StudyRun& run, explore::Sampler& sampler, explore::Points& points, explore::Funnel& funnel,
                    const TrialJournal::Identity& identity, const std::string& command_line,
                    parallel::Communicator& world) {
  const Study& study = run.study;
  auto found = study.strategy == explore::Strategy::bounded ? simulate_bounded(run, world) : simulate_all(run, world);
  if (!run.command.parts.shard && !run.command.limit) refine(run, sampler, points, funnel, found, world);
  auto table = table_of(run, found.rows, funnel);
  if (study.sensitivity && !run.command.no_sensitivity && !run.command.parts.shard) {
    table.sensitivity.tornado = tornado(run, found.rows, world);
    if (study.strategy != explore::Strategy::bounded)
      table.sensitivity.main_effects = main_effects(study, found.rows, table);
  }
  keep_results(run, found.rows, world);
  table.job.command_line = command_line;
  table.job.extra = std::move(found.extra);
  table.inputs = {{"study.yaml", study.text}, {"configuration.yaml", read_text(study.base)}};
  table.job.identity = identity;
  if (run.command.parts.shard)
    table.job.shard = fmt::format("{}/{}", run.command.parts.shard->index, run.command.parts.shard->count);
  const auto file = results::write_study(run.command.output, table, run.command.force, world);
  world.agree([&] {
    if (!world.is_root()) return;
    if (!run.command.csv.empty()) write_csv(run.command.csv, table);
    if (writes_configurations(study, run.command)) write_configurations(run, found.rows);
    remove_older_trials(run, found.rows);
    run.journal.remove();
    if (file != run.command.output)
      spdlog::warn("{} has appeared meanwhile and is kept: the trials are in {}", run.command.output.string(),
                   file.string());
    print_found(run, found.rows, table);
  });
}

/// Throws Error (bad_input) if no combination is legal, below the reasons.
void require_legal(const Study& study, const ExploreCommand& command, const explore::Funnel& funnel) {
  if (funnel.legal > 0) return;
  print_funnel(study, funnel);
  throw Error(ErrorCode::bad_input, {.file = command.file.string()},
              "no combination of the parameters is legal, for the reasons that stand above",
              "one that keeps all constraints");
}

/// Prints the configuration of a point: what it changes of its base, or the command that runs it where requests are
/// served.
void print_configuration(const Study& study, const config::Inputs& inputs) {
  if (!config::is_serving({.file = study.base})) {
    config::read(inputs);  // refuses what is not allowed
    return fmt::print("{}", config::changes_text(inputs, std::filesystem::absolute(study.base)));
  }
  std::string line = "orrery run " + study.base.string();
  for (const std::string& setting : inputs.overrides) line += fmt::format(" --set='{}'", setting);
  fmt::print("{}\n", line);
}

}  // namespace

void explore(const ExploreCommand& command, const std::string& command_line, parallel::Communicator& world) {
  keep_freed_memory();
  StopRequest& stop = JobContext::current()->stop;
  stop.set_time_limit(command.max_walltime_s, std::chrono::steady_clock::now());
  const Study study = run::agreed(world, [&] { return config::read_study(command.file); });
  explore::Space space = run::agreed(world, [&] { return space_of(study, command); });
  explore::Sampler sampler(space);
  explore::Points points(space);
  explore::Funnel funnel;
  Specimens specimens(explore::draws_samples(study.strategy) ? 20'000 : 256);
  FoundPoints found{points, specimens, {}};
  world.agree([&] {
    funnel = explore::draws_samples(study.strategy) ? draw_samples(command, sampler, space, found)
                                                    : find_combinations(command, space, found);
    if (command.trial && points.empty())
      throw Error(ErrorCode::usage,
                  fmt::format("orrery explore: --trial {}: the study has {} legal configurations.{}", *command.trial,
                              funnel.legal,
                              study.sampling.rounds == 0 ? ""
                                                         : " Those of the rounds around the best trials follow from "
                                                           "results: a run writes the CONFIG.yaml of the best ones "
                                                           "beside its output."));
  });
  if (command.trial || command.list) {
    if (!world.is_root()) return;
    if (command.list) return print_points(study, points, funnel);
    return print_configuration(study, inputs_of(study, command, points[0]));
  }
  if (study.strategy == explore::Strategy::bounded && config::is_serving({.file = study.base}))
    throw Error(ErrorCode::bad_input, {.file = command.file.string(), .key = "study.strategy"},
                "found bounded, whose bounds are those of steps, and the base serves requests",
                "strategy: grid, or one that draws samples");
  world.agree([&] {
    if (world.is_root()) require_sound(command, space, specimens);
  });
  world.agree([&] {
    if (world.is_root()) require_legal(study, command, funnel);
  });
  if (command.dry_run) return dry_run(study, command, points, funnel, world);
  world.agree([&] {
    if (world.is_root()) check_study_outputs(study, command);
  });
  const auto identity = identity_of(study, command, space, found.first);
  require_same(identity, world);
  Trials of_shards;
  if (!command.parts.merge.empty())
    of_shards = run::agreed(world, [&] { return read_shards(command.parts.merge, identity, points); });
  TrialJournal journal(command.output, identity, request_of(command), world);
  if (command.strict) journal.drop_unless_stopped();
  journal.adopt(std::move(of_shards));
  const std::size_t num_known = journal.known().size();
  if (num_known > 0 && world.is_root())
    spdlog::info("{} of {} configurations are done already, by {}", num_known, points.size(),
                 command.parts.merge.empty() ? "jobs that ended early" : "shards");
  const StudyRun run{study, command, space, points, journal, [&stop] { return stop.is_requested(); }};
  simulate_study(run, sampler, points, funnel, identity, command_line, world);
}

}  // namespace orrery::study
