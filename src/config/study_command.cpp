#include "study_command.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "option_values.hpp"
#include "orrery/base/text.hpp"
#include "orrery/config/units.hpp"

namespace orrery::config {
namespace {

/// Reads what `explore` and `best` have in common.
ExploreCommand explore_options(const Arguments& arguments, std::string_view command_name, const char* output) {
  ExploreCommand command;
  command.overrides = settings(arguments, command_name);
  command.output = arguments.text("output").value_or(output);
  command.csv = arguments.text("csv").value_or("");
  if (const auto walltime = arguments.text("max-walltime"))
    read_option(arguments, "max-walltime", [&] { command.max_walltime_s = parse_seconds(*walltime); });
  command.force = arguments.flag("force").value_or(false);
  return command;
}

/// Reads "I/N".
Shard shard_of(const Arguments& arguments, const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) arguments.refuse("shard", "I/N, such as 0/4");
  Shard shard;
  read_option(arguments, "shard", [&] {
    shard.index = static_cast<std::uint32_t>(parse_count(text.substr(0, slash), 0, 999'999));
    shard.count = static_cast<std::uint32_t>(parse_count(text.substr(slash + 1), 1, 1'000'000));
  });
  if (shard.index >= shard.count) arguments.refuse("shard", "I/N with I from 0 to N - 1");
  return shard;
}

/// Reads how a study is shared among jobs.
void read_shards(const Arguments& arguments, ExploreCommand& command) {
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
void require_one_task(const Arguments& arguments, const ExploreCommand& command) {
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

}  // namespace

ExploreCommand make_explore(const Arguments& arguments) {
  if (!arguments.positional()) refuse_usage("orrery explore: no file. Give a STUDY.yaml.");
  ExploreCommand command = explore_options(arguments, "explore", "explore.h5");
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
  command.keep_results = choice<KeptResults>(arguments, "keep-results",
                                             {{"none", KeptResults::none, "of no trial"},
                                              {"top", KeptResults::top, "of those that are listed"},
                                              {"all", KeptResults::all, "of all that are done"}})
                             .value_or(KeptResults::none);
  return command;
}

BestCommand make_best(const Arguments& arguments) {
  if (!arguments.positional())
    refuse_usage("orrery best: of which model? Give a preset, such as llama3-8b, or a file.");
  BestCommand command;
  command.model = *arguments.positional();
  command.system = needed(arguments, "best", "on", "dgx-h100-superpod");
  command.stack = arguments.text("stack").value_or("");
  command.cost = arguments.text("cost").value_or("");
  needed(arguments, "best", "npus", "64");
  command.npus = *arguments.count("npus");
  command.batch = arguments.count("batch");
  command.serve = arguments.text("serve").value_or("");
  command.slo = arguments.text("slo").value_or("");
  if (command.serve.empty() != command.slo.empty())
    refuse_usage(command.slo.empty() ? "orrery best: --serve needs the bounds to meet: --slo ttft=500ms,tpot=50ms"
                                     : "orrery best: --slo is of requests: give them with --serve FILE");
  if (!command.serve.empty() && (command.batch || !command.stack.empty() || !command.cost.empty()))
    refuse_usage("orrery best: --batch, --stack and --cost are of training, and --serve is not");
  command.explore = explore_options(arguments, "best", "best.h5");
  command.explore.write_configurations = true;
  return command;
}

}  // namespace orrery::config
