#include "study_outputs.hpp"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "orrery/base/error.hpp"
#include "orrery/base/job_context.hpp"
#include "orrery/base/output_file.hpp"
#include "orrery/config/changes.hpp"
#include "orrery/config/read.hpp"
#include "orrery/run/simulate.hpp"
#include "study_table.hpp"
#include "trial_journal.hpp"

namespace orrery::study {
namespace {

using explore::Point;
using explore::Study;

/// Returns the name of a file beside another one.
std::filesystem::path beside(const std::filesystem::path& output, const std::string& ending) {
  std::filesystem::path file = output;
  return file.replace_extension(ending);
}

/// Refuses outputs that are one file, or inputs of the study.
void require_files_of_their_own(const Study& study, const ExploreCommand& command) {
  const auto is_same = [](const std::filesystem::path& a, const std::filesystem::path& b) {
    std::error_code failure;
    return a.lexically_normal() == b.lexically_normal() || std::filesystem::equivalent(a, b, failure);
  };
  const auto refuse = [&](const std::filesystem::path& output, std::string_view what) {
    throw Error(ErrorCode::usage,
                fmt::format("orrery explore: {} is {} too. Name another file.", output.string(), what));
  };
  if (!command.csv.empty() && is_same(command.csv, command.output)) refuse(command.csv, "the results file");
  for (const std::filesystem::path& output : {command.output, command.csv}) {
    if (output.empty()) continue;
    if (is_same(output, command.file)) refuse(output, "the study");
    if (is_same(output, study.base)) refuse(output, "the base of the study");
    for (const auto& shard : command.parts.merge)
      if (is_same(output, shard)) refuse(output, "a shard");
  }
}

/// Returns the files of trials beside the output, by the numbers of the trials.
std::map<std::uint64_t, std::filesystem::path> files_of_trials(const std::filesystem::path& output,
                                                               std::string_view ending) {
  const std::string begin = output.stem().string() + ".trial-";
  std::map<std::uint64_t, std::filesystem::path> files;
  std::error_code failure;
  const auto folder = output.has_parent_path() ? output.parent_path() : std::filesystem::path(".");
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(ending)) continue;
    std::uint64_t number = 0;
    const char* const last = name.data() + name.size() - ending.size();
    const auto read = std::from_chars(name.data() + begin.size(), last, number);
    if (read.ec == std::errc() && read.ptr == last) files.emplace(number, entry.path());
  }
  return files;
}

/// Returns the endings of the files of trials that a job writes.
std::vector<std::string_view> endings_of_trials(const Study& study, const ExploreCommand& command) {
  std::vector<std::string_view> endings;
  if (writes_configurations(study, command)) endings.push_back(".yaml");
  if (command.keep_results != KeptResults::none) endings.push_back(".h5");
  return endings;
}

/// Refuses files of trials of another run where this one is to write such files without --force. A run that has left a
/// journal goes on, and they may be its own.
void require_no_trials(const Study& study, const ExploreCommand& command) {
  if (command.force || !journals_of(command.output).empty()) return;
  for (const std::string_view ending : endings_of_trials(study, command))
    for (const auto& [number, file] : files_of_trials(command.output, ending))
      throw Error(ErrorCode::output, {.file = file.string()}, "it exists, and is of a trial of another run",
                  "no such file", "Give --force to replace it, or another --output.");
}

/// Returns the rows of the trials whose results are kept.
std::vector<std::size_t> kept_rows(const StudyRun& run, const std::vector<Row>& rows) {
  if (run.command.keep_results == KeptResults::top) return best_rows(run.study, rows);
  std::vector<std::size_t> kept;
  if (run.command.keep_results == KeptResults::all)
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (rows[i].trial.status == TrialStatus::done) kept.push_back(i);
  return kept;
}

}  // namespace

bool writes_configurations(const Study& study, const ExploreCommand& command) {
  return command.write_configurations || (study.sampling.rounds > 0 && !command.parts.shard);
}

void check_study_outputs(const Study& study, const ExploreCommand& command) {
  require_files_of_their_own(study, command);
  require_no_trials(study, command);
  check_output(command.output, command.force);
  if (!command.csv.empty()) check_output(command.csv, command.force);
}

void keep_results(const StudyRun& run, const std::vector<Row>& rows, parallel::Communicator& world) {
  if (run.serves) return;
  std::vector<std::size_t> kept = kept_rows(run, rows);
  world.broadcast(kept, Rank(0));
  world.agree([&] {
    const auto alone = parallel::make_serial();
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (i % static_cast<std::size_t>(world.size()) != static_cast<std::size_t>(world.rank().value())) continue;
      const Point point = run.points[kept[i]];
      auto inputs = inputs_of(run.study, run.command, point);
      const auto file = beside(run.command.output, fmt::format(".trial-{}.h5", point.number));
      inputs.overrides.insert(
          inputs.overrides.end(),
          {fmt::format("run.output=\"{}\"", std::filesystem::absolute(file).string()), "run.quiet=true",
           fmt::format("run.fold={}", run.study.fidelity.fold), "run.force=true"});
      const auto results = run::simulate(config::read(inputs), *alone,
                                         {.writes_results = true, .command_line = "orrery explore --keep-results"});
      if (results.stopped_at) end_if_stopped();
    }
  });
}

void write_configurations(const StudyRun& run, const std::vector<Row>& rows) {
  if (run.serves) return;  // --trial N prints the command of one
  for (const std::size_t row : best_rows(run.study, rows)) {
    const auto file = beside(run.command.output, fmt::format(".trial-{}.yaml", rows[row].number));
    const auto folder = std::filesystem::absolute(file).parent_path();
    const auto base = std::filesystem::absolute(run.study.base).lexically_proximate(folder);
    const std::string text = config::changes_text(inputs_of(run.study, run.command, run.points[row]), base);
    PartialFile partial(file);
    partial.write(text);
    partial.commit();
  }
}

void remove_older_trials(const StudyRun& run, const std::vector<Row>& rows) {
  for (const std::string_view ending : endings_of_trials(run.study, run.command)) {
    auto files = files_of_trials(run.command.output, ending);
    for (const std::size_t row : ending == ".h5" ? kept_rows(run, rows) : best_rows(run.study, rows))
      files.erase(rows[row].number);
    for (const auto& [number, file] : files) std::filesystem::remove(file);
  }
}

}  // namespace orrery::study
