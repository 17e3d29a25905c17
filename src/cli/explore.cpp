#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "command.hpp"
#include "config_options.hpp"
#include "logged_job.hpp"
#include "option_values.hpp"
#include "orrery/base/quantity_text.hpp"
#include "orrery/base/text.hpp"
#include "orrery/study/explore.hpp"
#include "study_options.hpp"

namespace orrery::cli {
namespace {

void explore_as_job(const study::ExploreCommand& command, const CommandJob& job) {
  honour_signals();
  study::explore(command, job.command_line, job.world);
}

Option keep_results_option() {
  Option option{"keep-results", "WHICH",
                "write results.h5 of trials beside the output: none, top or all (default: none)"};
  option.words = {"none", "top", "all"};
  return option;
}

/// Reads "I/N".
study::Shard shard_of(const Arguments& arguments, const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) arguments.refuse("shard", "I/N, such as 0/4");
  study::Shard shard;
  read_option(arguments, "shard", [&] {
    shard.index = static_cast<std::uint32_t>(parse_count(text.substr(0, slash), 0, 999'999));
    shard.count = static_cast<std::uint32_t>(parse_count(text.substr(slash + 1), 1, 1'000'000));
  });
  if (shard.index >= shard.count) arguments.refuse("shard", "I/N with I from 0 to N - 1");
  return shard;
}

/// Reads how a study is shared among jobs.
void read_shards(const Arguments& arguments, study::ExploreCommand& command) {
  if (const auto shard = arguments.text("shard")) command.parts.shard = shard_of(arguments, *shard);
  const auto& files = arguments.positionals();
  const bool is_merge = arguments.flag("merge").value_or(false);
  if (is_merge && command.parts.shard)
    refuse_usage("orrery explore: both --shard and --merge are given. Give one of them.");
  if (is_merge && files.size() < 2)
    refuse_usage("orrery explore --merge: which files? Give those of all shards after STUDY.yaml.");
  if (!is_merge && files.size() > 1)
    refuse_usage(
        fmt::format("orrery explore: '{}' is one file too many. Files of shards need --merge.", cited(files[1])));
  command.parts.merge.assign(files.begin() + 1, files.end());
}

/// Refuses options of which at most one can be followed, and files that nobody would write.
void require_one_task(const Arguments& arguments, const study::ExploreCommand& command) {
  std::vector<std::string_view> tasks;
  if (command.list) tasks.emplace_back("--list");
  if (command.trial) tasks.emplace_back("--trial");
  if (command.dry_run) tasks.emplace_back("--dry-run");
  if (tasks.size() > 1)
    refuse_usage(fmt::format("orrery explore: both {} and {} are given. Give one of them.", tasks[0], tasks[1]));
  if (tasks.empty()) return;
  if (arguments.text("csv"))
    refuse_usage(
        fmt::format("orrery explore: --csv has no meaning with {}, which simulates nothing and writes no file. "
                    "Leave one of them out, or send what is printed to a file with '>'.",
                    tasks[0]));
}

const Subcommand& explore_subcommand() {
  static const Subcommand command{
      "explore",
      "Simulate the configurations of a study, and say which are best.",
      "STUDY.yaml ...",
      "  mpirun -np 2 orrery explore configs/studies/llama3-8b-64.yaml --output explore.h5\n"
      "  orrery explore configs/studies/llama3-8b-64.yaml --dry-run\n"
      "  orrery explore study.yaml --merge shard-0.h5 shard-1.h5 --output explore.h5",
      {{"Study",
        {{"list", "", "print the configurations, and simulate none"},
         {"trial", "N", "print configuration N as a CONFIG.yaml, and simulate none"},
         {"limit", "N", "simulate the first N configurations only"},
         {"dry-run", "", "print the bounds of the configurations, and simulate none"},
         {"shard", "I/N", "simulate the configurations whose number leaves the remainder I, from 0 to N - 1"},
         {"merge", "", "put the files of all shards together, which follow STUDY.yaml"},
         {"strict", "", "end at the first configuration that is faulty"},
         keep_results_option(),
         {"no-sensitivity", "",
          "leave out what the best trial depends on (/sensitivity), which takes some trials more"},
         walltime_option()}},
       study_output("explore.h5"),
       own_inputs()}};
  return command;
}

/// Returns of which trials --keep-results keeps results.
study::KeptResults kept_results(const Arguments& arguments) {
  const auto text = arguments.text("keep-results");
  if (!text || *text == "none") return study::KeptResults::none;
  if (*text == "top") return study::KeptResults::top;
  if (*text == "all") return study::KeptResults::all;
  arguments.refuse("keep-results", "none, top or all");
}

study::ExploreCommand make_explore(const Arguments& arguments) {
  if (!arguments.positional()) refuse_usage("orrery explore: no file. Give a STUDY.yaml.");
  study::ExploreCommand command = explore_options(arguments, "explore", "explore.h5");
  command.file = *arguments.positional();
  if (const auto trial = arguments.text("trial"))
    read_option(arguments, "trial", [&] {
      command.trial = static_cast<std::uint32_t>(parse_count(*trial, 0, std::numeric_limits<std::uint32_t>::max()));
    });
  command.limit = arguments.count("limit");
  command.no_sensitivity = arguments.flag("no-sensitivity").value_or(false);
  command.dry_run = arguments.flag("dry-run").value_or(false);
  command.list = arguments.flag("list").value_or(false);
  command.strict = arguments.flag("strict").value_or(false);
  require_one_task(arguments, command);
  read_shards(arguments, command);
  command.keep_results = kept_results(arguments);
  return command;
}

}  // namespace

extern const CommandEntry explore_entry;
const CommandEntry explore_entry{
    explore_subcommand, [](const Arguments& arguments) { return as_job(make_explore(arguments), explore_as_job); }};

}  // namespace orrery::cli
